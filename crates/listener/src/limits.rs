//! What a listener bears.

use std::time::Duration;

use ipnet::IpNet;

use super::descriptors::Descriptors;

/// Descriptors that are kept for everything that is no connection: the database, the log, files, the storage.
const RESERVED_DESCRIPTORS: u64 = 256;

/// Bounds of a listener. Times are measured by the server's own clock: nothing that a client sends moves them, except
/// where it says so.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Connections in all. 4,096, of some tens of kilobytes each; fewer where the descriptors do not suffice. When all
    /// are taken, the one that has been without a request the longest gives way to the new one.
    pub connections: usize,
    /// Connections of one address (an IPv4 address or an IPv6 /64), never more than half of all: whoever has one address
    /// cannot use up the total. 512, since a whole organisation may stand behind one address; beyond it the address's
    /// own oldest idle connection gives way.
    pub connections_per_address: usize,
    /// Blocks whose connections are bounded only in all: the operator's own proxies, through which everybody comes.
    pub exempt: Vec<IpNet>,
    /// From the accepted connection to the end of its TLS handshake. 10 s: it is two round trips.
    pub handshake: Duration,
    /// From the accepted connection to the first complete request head, TLS included. 15 s: an honest client connects
    /// because it has something to ask; one that connects ahead connects again.
    pub first_request: Duration,
    /// From the first byte of a later HTTP/1 head to its end. 10 s: a head is a packet or two.
    pub head: Duration,
    /// From the end of the last answer to the end of a connection without requests, whatever else is sent on it
    /// (HTTP/2 pings are answered and do not count). 60 s: longer than the usual pools of clients keep a connection.
    pub idle: Duration,
    /// The time in which a peer must take [`Limits::answer_bytes`] of an answer, or what is left of it. 30 s. It runs
    /// only while bytes wait for the peer, and for each HTTP/2 stream by itself.
    pub stalled_answer: Duration,
    /// Bytes of an answer that a peer must take in [`Limits::stalled_answer`]: 16 KiB, half a kilobyte a second. A peer
    /// that takes one byte at a time is as good as one that takes none.
    pub answer_bytes: u64,
    /// Requests that are finished although their client has gone, in all. 1,024; beyond it such a request is dropped
    /// where it stands, or resetting streams would be a way to have any number of requests run at once.
    pub detached: usize,
    /// Bytes that HTTP/1 buffers per connection and direction, and so the longest head. 64 KiB.
    pub http1_buffer: usize,
    /// Streams that an HTTP/2 connection may have open. 100, the least that RFC 9113 recommends.
    pub http2_streams: u32,
    /// Bytes of the headers of an HTTP/2 request, as RFC 9113 counts them. 16 KiB; it bounds CONTINUATION frames too.
    pub http2_header_list: u32,
    /// Silence on an HTTP/2 connection after which a ping asks whether the peer is there. 20 s.
    pub http2_ping: Duration,
    /// The time in which the ping must be answered. 10 s.
    pub http2_pong: Duration,
    /// Bytes that are read and dropped after an answer that came before its request's body was read. 64 MiB: beyond any
    /// upload that is a mistake, and reading them costs no memory and little more than a copy.
    pub linger_bytes: u64,
    /// How long they are read. 30 s; meanwhile the connection counts as idle, and gives way like any other.
    pub linger: Duration,
    /// How long the peer may pause meanwhile. 5 s.
    pub linger_pause: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            connections: 4096,
            connections_per_address: 512,
            exempt: Vec::new(),
            handshake: Duration::from_secs(10),
            first_request: Duration::from_secs(15),
            head: Duration::from_secs(10),
            idle: Duration::from_secs(60),
            stalled_answer: Duration::from_secs(30),
            answer_bytes: 16 * 1024,
            detached: 1024,
            http1_buffer: 64 * 1024,
            http2_streams: 100,
            http2_header_list: 16 * 1024,
            http2_ping: Duration::from_secs(20),
            http2_pong: Duration::from_secs(10),
            linger_bytes: 64 * 1024 * 1024,
            linger: Duration::from_secs(30),
            linger_pause: Duration::from_secs(5),
        }
    }
}

impl Limits {
    /// The limits that the process can keep with the descriptors that it has.
    pub(super) fn fitted(mut self, descriptors: Descriptors) -> Self {
        let left = descriptors
            .limit
            .saturating_sub(RESERVED_DESCRIPTORS)
            .max(descriptors.limit / 2);
        self.connections = self.connections.min(usize::try_from(left).unwrap_or(usize::MAX)).max(1);
        self.connections_per_address = self.connections_per_address.min(self.connections / 2).max(1);
        self
    }

    /// The shortest of the times: looking at a connection this often misses none of them.
    pub(super) fn tick(&self) -> Duration {
        self.first_request
            .min(self.head)
            .min(self.idle)
            .min(self.stalled_answer)
            .max(Duration::from_millis(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_descriptors_for_the_rest_and_an_address_gets_half_at_most() {
        let fitted = |limit| {
            let limits = Limits::default().fitted(Descriptors { before: limit, limit });
            (limits.connections, limits.connections_per_address)
        };
        assert_eq!(fitted(20_000), (4096, 512));
        assert_eq!(fitted(1024), (768, 384));
        assert_eq!(fitted(256), (128, 64));
        assert_eq!(fitted(0), (1, 1));
    }
}
