//! Ports for programs that are told theirs before they listen.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};

use rand::Rng as _;

/// Below those that systems give to whoever asks for any (Linux: 32,768 and up): what is free among those is somebody's a moment
/// later, in a suite that opens hundreds of listeners and connections meanwhile.
const NOT_GIVEN_AWAY: std::ops::Range<u16> = 10_240..32_768;

/// An address of loopback on which nobody listens, and that nobody is given without asking for it by number.
///
/// # Panics
/// Where none is found in a thousand tries.
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
