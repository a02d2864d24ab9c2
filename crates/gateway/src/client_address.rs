//! The client's address, which a trusted proxy may report.

use std::net::IpAddr;

use http::HeaderMap;
use ipnet::IpNet;

/// The address blocks of the operator's own proxies.
#[derive(Clone, Debug, Default)]
pub struct TrustedProxies(pub Vec<IpNet>);

impl TrustedProxies {
    /// Returns the peer's address or, if the peer is a trusted proxy, the rightmost entry of `X-Forwarded-For` that is not a
    /// trusted proxy. Entries further left may be forged.
    pub fn client_address(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        let mut client = peer.to_canonical();
        if !self.trusts(client) {
            return client;
        }
        // The header is split as bytes, so that invalid text from the client does not hide the entries of the proxies.
        let entries: Vec<&[u8]> = headers
            .get_all("x-forwarded-for")
            .iter()
            .flat_map(|value| value.as_bytes().split(|byte| *byte == b','))
            .collect();
        for entry in entries.into_iter().rev() {
            // An entry that is not an address ends the trusted chain.
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

/// Parses an entry of `X-Forwarded-For`: an address, which some proxies write with a port or in brackets.
fn parse(entry: &str) -> Option<IpAddr> {
    entry
        .parse::<IpAddr>()
        .ok()
        .or_else(|| entry.parse::<std::net::SocketAddr>().ok().map(|socket| socket.ip()))
        .or_else(|| entry.strip_prefix('[')?.strip_suffix(']')?.parse().ok())
        .map(|address| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(proxies: &[&str], peer: &str, forwarded: &[&str]) -> String {
        let proxies = TrustedProxies(proxies.iter().map(|block| block.parse().unwrap()).collect());
        let mut headers = HeaderMap::new();
        for value in forwarded {
            headers.append("x-forwarded-for", value.parse().unwrap());
        }
        proxies.client_address(peer.parse().unwrap(), &headers).to_string()
    }

    #[test]
    fn the_peer_is_the_client_unless_it_is_a_trusted_proxy() {
        assert_eq!(client(&[], "192.0.2.7", &["198.51.100.1"]), "192.0.2.7");
        assert_eq!(client(&["10.0.0.0/8"], "192.0.2.7", &["198.51.100.1"]), "192.0.2.7");
    }

    /// KEY-5
    #[test]
    fn behind_trusted_proxies_the_rightmost_untrusted_entry_is_the_client() {
        let proxies = ["10.0.0.0/8", "fd00::/8"];
        assert_eq!(
            client(&proxies, "10.0.0.1", &["203.0.113.5, 198.51.100.1, 10.0.0.2"]),
            "198.51.100.1"
        );
        assert_eq!(
            client(&proxies, "10.0.0.1", &["203.0.113.5", "198.51.100.1:4711"]),
            "198.51.100.1"
        );
        assert_eq!(client(&proxies, "fd00::1", &["[2001:db8::1]"]), "2001:db8::1");
        assert_eq!(client(&proxies, "10.0.0.1", &["198.51.100.1, nonsense"]), "10.0.0.1");
        assert_eq!(
            client(&proxies, "::ffff:10.0.0.1", &["::ffff:198.51.100.1"]),
            "198.51.100.1"
        );
        assert_eq!(client(&proxies, "10.0.0.1", &[]), "10.0.0.1");
    }

    #[test]
    fn invalid_text_does_not_hide_the_entries_of_proxies() {
        let proxies = TrustedProxies(vec!["10.0.0.0/8".parse().unwrap()]);
        let mut headers = HeaderMap::new();
        let value = http::HeaderValue::from_bytes(b"\xc4\xb1stanbul, 198.51.100.1").unwrap();
        headers.append("x-forwarded-for", value);
        let client = proxies.client_address("10.0.0.1".parse().unwrap(), &headers);
        assert_eq!(client.to_string(), "198.51.100.1");
    }
}
