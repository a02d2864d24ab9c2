//! A small HTTP server with scripted responses that records the requests.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// The reaction to one request.
pub enum Step {
    /// Respond with this status, these headers (`name: value`) and this body.
    Respond(u16, Vec<String>, String),
    /// Read the request and close the connection without a response.
    HangUp,
}

/// A request as it arrived.
#[derive(Clone, Debug)]
pub struct Received {
    pub line: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Received {
    pub fn header(&self, name: &str) -> &str {
        let mut values = self
            .headers
            .iter()
            .filter(|(key, _)| key == name)
            .map(|(_, value)| value.as_str());
        let value = values.next().unwrap_or_else(|| panic!("no {name} in {self:?}"));
        assert_eq!(values.next(), None, "{name} was sent twice");
        value
    }
}

pub struct Server {
    pub base_url: String,
    received: Arc<Mutex<Vec<Received>>>,
}

impl Server {
    /// Starts a server that handles the requests with `steps` in order. The last step handles all further requests.
    pub async fn start(steps: Vec<Step>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base_url = format!("http://{}", listener.local_addr().unwrap());
        let received = Arc::new(Mutex::new(Vec::new()));
        let log = received.clone();
        tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                // The client has closed the connection.
                let Some(request) = read(&mut stream).await else {
                    continue;
                };
                let number = {
                    let mut log = log.lock().unwrap();
                    log.push(request);
                    log.len() - 1
                };
                if let Step::Respond(status, headers, body) = &steps[number.min(steps.len() - 1)] {
                    let lines: String = headers.iter().map(|line| format!("{line}\r\n")).collect();
                    let length = body.len();
                    let head =
                        format!("HTTP/1.1 {status} x\r\n{lines}content-length: {length}\r\nconnection: close\r\n\r\n");
                    stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
                }
            }
        });
        Self { base_url, received }
    }

    pub fn received(&self) -> Vec<Received> {
        self.received.lock().unwrap().clone()
    }
}

async fn read(stream: &mut TcpStream) -> Option<Received> {
    let mut bytes = Vec::new();
    let head_end = loop {
        if let Some(at) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break at;
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8(bytes[..head_end].to_vec()).unwrap();
    let (line, rest) = head.split_once("\r\n").unwrap();
    let headers: Vec<(String, String)> = rest
        .lines()
        .map(|line| line.split_once(':').unwrap())
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let length = headers
        .iter()
        .find(|(name, _)| name == "content-length")
        .map_or(0, |(_, value)| value.parse().unwrap());
    let mut body = bytes.split_off(head_end + 4);
    while body.len() < length {
        if stream.read_buf(&mut body).await.ok()? == 0 {
            return None;
        }
    }
    Some(Received {
        line: line.to_owned(),
        headers,
        body,
    })
}
