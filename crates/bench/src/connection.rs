//! A minimal keep-alive HTTP/1.1 connection. It is cheap, because it shares the processors with the measured server.

use std::net::{Ipv4Addr, SocketAddr};
use std::ops::Range;

use thiserror::Error;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

/// The maximum number of headers of a response.
const HEADERS: usize = 32;

/// An error of an exchange.
#[derive(Debug, Error)]
pub enum ExchangeError {
    /// The connection failed.
    #[error("connection error: {0}")]
    Io(#[from] std::io::Error),
    /// The connection was closed before the response was complete.
    #[error("the connection was closed before the response was complete")]
    Closed,
    /// The response is not supported by this reader.
    #[error("unsupported response: {0}")]
    Malformed(String),
}

/// An open connection.
pub struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

/// A response whose body is in the connection's buffer.
pub struct Response<'a> {
    /// The status.
    pub status: u16,
    /// The body.
    pub body: &'a [u8],
}

impl Connection {
    /// Connects.
    ///
    /// # Errors
    /// If the connection fails.
    pub async fn open(address: SocketAddr) -> Result<Self, ExchangeError> {
        Self::of(TcpStream::connect(address).await?)
    }

    /// Connects from this address, which is one of the loopback interface.
    ///
    /// # Errors
    /// If the connection fails.
    pub async fn open_from(source: Ipv4Addr, address: SocketAddr) -> Result<Self, ExchangeError> {
        let socket = TcpSocket::new_v4()?;
        socket.bind((source, 0).into())?;
        Self::of(socket.connect(address).await?)
    }

    fn of(stream: TcpStream) -> Result<Self, ExchangeError> {
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            buffer: Vec::with_capacity(64 * 1024),
        })
    }

    /// Returns the open connection without its buffer, so that it can stay idle.
    pub fn into_stream(self) -> TcpStream {
        self.stream
    }

    /// Sends a request and reads its response.
    ///
    /// # Errors
    /// [`ExchangeError`]. The connection must not be used after an error.
    pub async fn exchange(&mut self, request: &[u8]) -> Result<Response<'_>, ExchangeError> {
        self.stream.write_all(request).await?;
        self.buffer.clear();
        let (status, body) = loop {
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                return Err(ExchangeError::Closed);
            }
            if let Some(head) = head(&self.buffer)? {
                break head;
            }
        };
        while self.buffer.len() < body.end {
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                return Err(ExchangeError::Closed);
            }
        }
        match self.buffer.get(body) {
            Some(body) if self.buffer.as_ptr_range().end == body.as_ptr_range().end => Ok(Response { status, body }),
            _ => Err(ExchangeError::Malformed(
                "more than one response to one request".to_owned(),
            )),
        }
    }
}

/// Returns the status and the range of the body once the head is complete.
fn head(buffer: &[u8]) -> Result<Option<(u16, Range<usize>)>, ExchangeError> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS];
    let mut response = httparse::Response::new(&mut headers);
    let malformed = |error: String| ExchangeError::Malformed(error);
    let start = match response.parse(buffer).map_err(|error| malformed(error.to_string()))? {
        httparse::Status::Partial => return Ok(None),
        httparse::Status::Complete(start) => start,
    };
    let length = response
        .headers
        .iter()
        .find(|header| header.name.eq_ignore_ascii_case("content-length"))
        .and_then(|header| std::str::from_utf8(header.value).ok()?.parse::<usize>().ok())
        .ok_or_else(|| malformed("no Content-Length".to_owned()))?;
    let status = response.code.ok_or_else(|| malformed("no status".to_owned()))?;
    Ok(Some((status, start..start + length)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_complete_head_yields_the_status_and_the_range_of_the_body() {
        let text = b"HTTP/1.1 201 Created\r\nContent-Length: 2\r\nx-request-id: 1\r\n\r\n{}";
        for end in 0..text.len() - 2 {
            assert!(head(&text[..end]).unwrap().is_none(), "{end}");
        }
        assert_eq!(head(text).unwrap(), Some((201, text.len() - 2..text.len())));
        assert!(head(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").is_err());
        assert!(head(b"SPDY\r\n\r\n").is_err());
    }
}
