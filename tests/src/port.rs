//! Ports for programs that must be given a port before they listen.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};

use rand::Rng as _;

/// Ports below the ephemeral ones (Linux: 32,768 and up). A free ephemeral port may be taken a moment later, in a suite that opens
/// hundreds of listeners and connections.
const RANGE: std::ops::Range<u16> = 10_240..32_768;

/// Returns a loopback address with a free port that the system does not assign to others.
///
/// # Panics
/// If a thousand tries find none.
pub fn free_address() -> SocketAddr {
    let mut random = rand::rng();
    (0..1_000)
        .map(|_| SocketAddr::from((Ipv4Addr::LOCALHOST, random.random_range(RANGE))))
        .find(|address| TcpListener::bind(address).is_ok())
        .expect("a free port")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_never_assigns_these_ports() {
        for _ in 0..100 {
            let given = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
            let port = given.local_addr().unwrap().port();
            assert!(!RANGE.contains(&port), "{port}");
        }
        assert!(RANGE.contains(&free_address().port()));
    }
}
