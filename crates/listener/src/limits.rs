//! Listener limits and timeouts, and the process's limit of file descriptors.

use std::io;
use std::time::Duration;

use ipnet::IpNet;
use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Descriptors that are reserved for other uses: the database, the log, files, and the object storage.
const RESERVED_DESCRIPTORS: u64 = 256;

/// Limits of a listener. Bytes that a client sends do not extend a timeout, except where its description says so.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Maximum number of connections. The default is 12,288, or fewer if the descriptors do not suffice. One that waits for a
    /// request takes a few kilobytes; a request takes some tens of kilobytes. At the limit, a new connection evicts the one that has been idle the longest.
    pub connections: usize,
    /// Maximum number of connections per client network (an IPv4 address or an IPv6 /64), never more than half of the total.
    /// The default is 512, because a whole organization may share one address. At the limit, a new connection evicts the
    /// network's own longest-idle connection.
    pub connections_per_address: usize,
    /// CIDR blocks that are exempt from the limit per client network, such as the operator's own proxies.
    pub exempt: Vec<IpNet>,
    /// Time from accepting a connection to the end of its TLS handshake. The default is 10 s; a handshake takes two round
    /// trips.
    pub handshake: Duration,
    /// Time from accepting a connection to its first complete request head, including the TLS handshake. The default is 15 s. A
    /// client that opens connections in advance has to reconnect.
    pub first_request: Duration,
    /// Time from the first byte of a later HTTP/1 request head to its last. The default is 10 s.
    pub head: Duration,
    /// Time without a request after which a connection is closed. HTTP/2 pings are answered and do not count as requests. The
    /// default is 60 s.
    pub idle: Duration,
    /// Time in which a peer must read [`Limits::response_bytes`] of a response, or the rest of it. The default is 30 s. It is
    /// measured for each HTTP/2 stream, and only while bytes wait to be sent.
    pub stalled_response: Duration,
    /// Bytes of a response that a peer must read within [`Limits::stalled_response`]. The default is 16 KiB, which is half a
    /// kilobyte per second with the default time.
    pub response_bytes: u64,
    /// Maximum number of requests per client network that are in progress: their handlers run, or their responses have a known
    /// size and are not sent completely. The default is 64. Further ones wait before their handlers start, so that a client which
    /// sends many requests and reads no response occupies little memory with them.
    pub in_progress_per_address: usize,
    /// Maximum number of requests of all addresses, exempt ones included, whose handlers run, without those that wait for their
    /// bodies. The default is 1,024. Further ones wait for a permit, without the memory of a running handler.
    pub in_progress: usize,
    /// Maximum time that a request waits for that permit, before its handler starts and for the rest of its body together. The
    /// default is 1 s. It then runs without a permit, and its handler can find this in the extension [`Queued`](super::Queued).
    pub queue_wait: Duration,
    /// Maximum number of responses per client network that their peers do not read. The default is 32, which leaves the other half
    /// of [`Limits::in_progress_per_address`] to clients behind the same address. A response counts while
    /// its peer has read less than [`Limits::response_bytes`] of it for a second. Every second, the connections whose
    /// responses have waited the longest are closed until the others are within the limit.
    pub unread_per_address: usize,
    /// Maximum number of such responses in total, including those to exempt addresses. The default is 1,024.
    pub unread: usize,
    /// Maximum number of bytes that such responses to one client network keep in memory, enforced in the same way. The default
    /// is 1 MiB. Bytes that several responses share do not count.
    pub unread_bytes_per_address: u64,
    /// Maximum number of bytes in memory that wait to be sent, in total. The default is 12 MiB. It is enforced at once, however
    /// short the wait. A single response may be larger.
    pub unread_bytes: u64,
    /// Maximum number of running requests whose clients have disconnected. The default is 1,024. Further ones are dropped
    /// unfinished; otherwise a client could run any number of requests at once by resetting streams.
    pub detached: usize,
    /// Bytes that HTTP/1 buffers per connection and direction, which is also the maximum size of a head. The default is
    /// 16 KiB.
    pub http1_buffer: usize,
    /// Maximum number of concurrent HTTP/2 streams per connection. The default is 8. If a peer reads no response, the
    /// service keeps one for each stream. This number therefore multiplies the memory that an address can occupy. RFC 9113
    /// recommends at least 100 for browsers, which load many files of a page at once; clients of an API rarely have more than
    /// a few requests in progress, and can open further connections.
    pub http2_streams: u32,
    /// Maximum size of the headers of an HTTP/2 request in bytes, as RFC 9113 counts them, CONTINUATION frames included. The
    /// default is 8 KiB. The signature headers of a request take less than one.
    pub http2_header_list: u32,
    /// Time without traffic on an HTTP/2 connection after which the server sends a ping. The default is 20 s.
    pub http2_ping: Duration,
    /// Time in which the ping must be answered. The default is 10 s.
    pub http2_pong: Duration,
    /// Bytes of a request that are discarded after a response that was sent before the body was read. The default is 64 MiB,
    /// which is more than a client uploads by mistake; discarding them needs no memory.
    pub linger_bytes: u64,
    /// Maximum time for discarding. The default is 30 s. The connection counts as idle and can be evicted.
    pub linger: Duration,
    /// Maximum pause of the peer while its bytes are discarded. The default is 5 s.
    pub linger_pause: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            connections: 12 * 1024,
            connections_per_address: 512,
            exempt: Vec::new(),
            handshake: Duration::from_secs(10),
            first_request: Duration::from_secs(15),
            head: Duration::from_secs(10),
            idle: Duration::from_secs(60),
            stalled_response: Duration::from_secs(30),
            response_bytes: 16 * 1024,
            in_progress_per_address: 64,
            in_progress: 1024,
            queue_wait: Duration::from_secs(1),
            unread_per_address: 32,
            unread: 1024,
            unread_bytes_per_address: 1024 * 1024,
            unread_bytes: 12 * 1024 * 1024,
            detached: 1024,
            http1_buffer: 16 * 1024,
            http2_streams: 8,
            http2_header_list: 8 * 1024,
            http2_ping: Duration::from_secs(20),
            http2_pong: Duration::from_secs(10),
            linger_bytes: 64 * 1024 * 1024,
            linger: Duration::from_secs(30),
            linger_pause: Duration::from_secs(5),
        }
    }
}

impl Limits {
    /// Returns the limits with at most as many connections as there are descriptors for.
    pub(super) fn fit_to(mut self, descriptors: Descriptors) -> Self {
        let left = descriptors
            .limit
            .saturating_sub(RESERVED_DESCRIPTORS)
            .max(descriptors.limit / 2);
        self.connections = self.connections.min(usize::try_from(left).unwrap_or(usize::MAX)).max(1);
        self.connections_per_address = self.connections_per_address.min(self.connections / 2).max(1);
        self
    }

    /// Returns the shortest of the timeouts that are checked periodically. Connections are checked this often, so that no deadline is
    /// missed.
    pub(super) fn tick(&self) -> Duration {
        self.first_request
            .min(self.head)
            .min(self.idle)
            .min(self.stalled_response)
            .max(Duration::from_millis(1))
    }
}

/// The process's limit of file descriptors. Each connection needs one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Descriptors {
    /// The limit at the start of the process.
    pub before: u64,
    /// The current limit.
    pub limit: u64,
}

impl Descriptors {
    /// Raises the soft limit to the hard limit, or keeps it if the operating system rejects the change. The usual soft limit of
    /// 1,024 protects programs that call `select`; this program does not call it.
    ///
    /// # Errors
    /// If the limits cannot be read.
    pub fn raise() -> io::Result<Self> {
        let (before, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
        let limit = match setrlimit(Resource::RLIMIT_NOFILE, hard, hard) {
            Ok(()) => hard,
            Err(_) => before,
        };
        Ok(Descriptors { before, limit })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_descriptors_for_other_uses_and_a_network_gets_at_most_half() {
        let fitted = |limit| {
            let limits = Limits::default().fit_to(Descriptors { before: limit, limit });
            (limits.connections, limits.connections_per_address)
        };
        assert_eq!(fitted(20_000), (12_288, 512));
        assert_eq!(fitted(1024), (768, 384));
        assert_eq!(fitted(256), (128, 64));
        assert_eq!(fitted(0), (1, 1));
    }
}
