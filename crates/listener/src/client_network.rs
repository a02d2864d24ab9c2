//! The part of a client's address by which limits are counted.

use std::net::IpAddr;

/// The addresses that limits count as one client: an IPv4 address, or an IPv6 /64, the smallest network that a provider assigns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ClientNetwork {
    /// An IPv4 address. IPv4-mapped IPv6 addresses are treated as IPv4.
    V4(u32),
    /// The first 64 bits of an IPv6 address.
    V6(u64),
}

impl ClientNetwork {
    /// Returns the network of an address.
    pub fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(v4) => ClientNetwork::V4(v4.to_bits()),
            IpAddr::V6(v6) => ClientNetwork::V6((v6.to_bits() >> 64) as u64),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ipv6_64_is_one_client_and_a_mapped_ipv4_address_counts_as_ipv4() {
        let of = |text: &str| ClientNetwork::of(text.parse().unwrap());
        assert_eq!(of("2001:db8:0:1::1"), of("2001:db8:0:1:ffff::2"));
        assert_ne!(of("2001:db8:0:1::1"), of("2001:db8:0:2::1"));
        assert_eq!(of("::ffff:192.0.2.1"), of("192.0.2.1"));
    }
}
