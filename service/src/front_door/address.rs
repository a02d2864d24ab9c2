//! The client's address.

use std::net::IpAddr;

use http::HeaderMap;
use ipnet::IpNet;

/// Blocks of addresses of the operator's own proxies.
#[derive(Clone, Debug, Default)]
pub struct TrustedProxies(pub Vec<IpNet>);

impl TrustedProxies {
    /// The peer's address, unless the peer is a trusted proxy: then the right-most `X-Forwarded-For` entry that is
    /// none. What stands further left was written by a stranger.
    pub fn client_address(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        let mut client = canonical(peer);
        if !self.trusts(client) {
            return client;
        }
        // Bytes, for a stranger may have written what is no text: that must not hide what the proxies appended.
        let entries: Vec<&[u8]> = headers
            .get_all("x-forwarded-for")
            .iter()
            .flat_map(|value| value.as_bytes().split(|byte| *byte == b','))
            .collect();
        for entry in entries.into_iter().rev() {
            // An entry that is no address ends the chain that can be believed.
            let Some(address) = std::str::from_utf8(entry).ok().and_then(|text| parse(text.trim())) else {
                return client;
            };
            client = address;
            if !self.trusts(client) {
                return client;
            }
        }
        client
    }

    fn trusts(&self, address: IpAddr) -> bool {
        self.0.iter().any(|block| block.contains(&address))
    }
}

/// Whom limits count as one: a v4 address, or a v6 network of 64 bits, which is the least that anybody has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Neighbourhood {
    /// A v4 address, v4-mapped v6 included.
    V4(u32),
    /// The first 64 bits of a v6 address.
    V6(u64),
}

impl Neighbourhood {
    /// That of an address.
    pub fn of(address: IpAddr) -> Self {
        match canonical(address) {
            IpAddr::V4(v4) => Neighbourhood::V4(v4.to_bits()),
            IpAddr::V6(v6) => Neighbourhood::V6((v6.to_bits() >> 64) as u64),
        }
    }
}

/// Whether `address` is in one of `blocks`; a v4-mapped v6 address is its v4 address.
pub fn admits(blocks: &[IpNet], address: IpAddr) -> bool {
    let address = canonical(address);
    blocks.is_empty() || blocks.iter().any(|block| canonical_block(block).contains(&address))
}

fn canonical(address: IpAddr) -> IpAddr {
    address.to_canonical()
}

/// `::ffff:10.0.0.0/104` means `10.0.0.0/8`.
fn canonical_block(block: &IpNet) -> IpNet {
    let IpNet::V6(v6) = block else { return *block };
    match (v6.addr().to_ipv4_mapped(), v6.prefix_len().checked_sub(96)) {
        (Some(v4), Some(length)) => ipnet::Ipv4Net::new(v4, length).map(IpNet::V4).unwrap_or(*block),
        _ => *block,
    }
}

/// An entry of `X-Forwarded-For`: an address, with a port or in brackets as some proxies write it.
fn parse(entry: &str) -> Option<IpAddr> {
    entry
        .parse::<IpAddr>()
        .ok()
        .or_else(|| entry.parse::<std::net::SocketAddr>().ok().map(|socket| socket.ip()))
        .or_else(|| entry.strip_prefix('[')?.strip_suffix(']')?.parse().ok())
        .map(canonical)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(proxies: &[&str], peer: &str, forwarded: &[&str]) -> String {
        let proxies = TrustedProxies(proxies.iter().map(|block| block.parse().unwrap()).collect());
        let mut headers = HeaderMap::new();
        for value in forwarded {
            headers.append("x-forwarded-for", value.parse().unwrap());
        }
        proxies.client_address(peer.parse().unwrap(), &headers).to_string()
    }

    #[test]
    fn the_peer_is_the_client_unless_it_is_a_trusted_proxy() {
        assert_eq!(seen(&[], "192.0.2.7", &["198.51.100.1"]), "192.0.2.7");
        assert_eq!(seen(&["10.0.0.0/8"], "192.0.2.7", &["198.51.100.1"]), "192.0.2.7");
    }

    /// KEY-5
    #[test]
    fn behind_trusted_proxies_the_right_most_untrusted_entry_is_the_client() {
        let proxies = ["10.0.0.0/8", "fd00::/8"];
        assert_eq!(
            seen(&proxies, "10.0.0.1", &["203.0.113.5, 198.51.100.1, 10.0.0.2"]),
            "198.51.100.1"
        );
        assert_eq!(
            seen(&proxies, "10.0.0.1", &["203.0.113.5", "198.51.100.1:4711"]),
            "198.51.100.1"
        );
        assert_eq!(seen(&proxies, "fd00::1", &["[2001:db8::1]"]), "2001:db8::1");
        assert_eq!(seen(&proxies, "10.0.0.1", &["198.51.100.1, nonsense"]), "10.0.0.1");
        assert_eq!(
            seen(&proxies, "::ffff:10.0.0.1", &["::ffff:198.51.100.1"]),
            "198.51.100.1"
        );
        assert_eq!(seen(&proxies, "10.0.0.1", &[]), "10.0.0.1");
    }

    #[test]
    fn what_is_no_text_hides_nothing_that_proxies_appended() {
        let proxies = TrustedProxies(vec!["10.0.0.0/8".parse().unwrap()]);
        let mut headers = HeaderMap::new();
        let value = http::HeaderValue::from_bytes(b"\xc4\xb1stanbul, 198.51.100.1").unwrap();
        headers.append("x-forwarded-for", value);
        let seen = proxies.client_address("10.0.0.1".parse().unwrap(), &headers);
        assert_eq!(seen.to_string(), "198.51.100.1");
    }

    /// KEY-5
    #[test]
    fn an_allowlist_admits_its_blocks_and_v4_mapped_addresses_are_v4() {
        let blocks: Vec<IpNet> = ["192.0.2.0/24", "2001:db8::/32", "::ffff:198.51.100.0/120"]
            .map(|block| block.parse().unwrap())
            .to_vec();
        for admitted in ["192.0.2.1", "::ffff:192.0.2.1", "2001:db8::9", "198.51.100.9"] {
            assert!(admits(&blocks, admitted.parse().unwrap()), "{admitted}");
        }
        for refused in ["192.0.3.1", "2001:db9::9", "198.51.101.9"] {
            assert!(!admits(&blocks, refused.parse().unwrap()), "{refused}");
        }
        assert!(admits(&[], "203.0.113.1".parse().unwrap()));
    }
}
