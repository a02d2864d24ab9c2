//! Ports for programs that must be given a port before they listen.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};

use rand::Rng as _;

/// Below the ephemeral ports (Linux: 32,768 and up): one of those that is free now may be taken a moment later, in a suite that
/// opens hundreds of listeners and connections.
const NOT_GIVEN_AWAY: std::ops::Range<u16> = 10_240..32_768;

/// A loopback address on which nothing listens, and that the system assigns to nobody.
///
/// # Panics
/// If a thousand tries find none.
pub fn free_address() -> SocketAddr {
    let mut random = rand::rng();
    (0..1_000)
        .map(|_| SocketAddr::from((Ipv4Addr::LOCALHOST, random.random_range(NOT_GIVEN_AWAY))))
        .find(|address| TcpListener::bind(address).is_ok())
        .expect("of a thousand ports one is free")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asks_for_any_port_is_given_none_of_these() {
        for _ in 0..100 {
            let given = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
            let port = given.local_addr().unwrap().port();
            assert!(!NOT_GIVEN_AWAY.contains(&port), "{port}");
        }
        assert!(NOT_GIVEN_AWAY.contains(&free_address().port()));
    }
}
