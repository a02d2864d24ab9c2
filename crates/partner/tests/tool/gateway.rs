//! A TCP proxy between a partner and the service. Its address stays the same while the service is replaced, and it can drop
//! connections. And a server with prepared responses.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

pub struct Gateway {
    pub base_url: String,
    target: Arc<Mutex<Option<String>>>,
    connections: Arc<Mutex<JoinSet<()>>>,
}

impl Gateway {
    /// Starts a gateway to the service at this URL.
    pub async fn to(base_url: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let gateway = Self {
            base_url: format!("http://{}", listener.local_addr().unwrap()),
            target: Arc::default(),
            connections: Arc::default(),
        };
        gateway.point(Some(base_url));
        let (target, connections) = (gateway.target.clone(), gateway.connections.clone());
        tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                let Some(target) = target.lock().unwrap().clone() else {
                    continue;
                };
                connections.lock().unwrap().spawn(async move {
                    if let Ok(mut service) = TcpStream::connect(target).await {
                        let _ = copy_bidirectional(&mut client, &mut service).await;
                    }
                });
            }
        });
        gateway
    }

    /// Sends new connections to this service, or drops them.
    pub fn point(&self, base_url: Option<&str>) {
        let address = base_url.map(|url| url.trim_start_matches("http://").to_owned());
        *self.target.lock().unwrap() = address;
    }

    /// Drops every open connection.
    pub fn cut(&self) {
        self.connections.lock().unwrap().abort_all();
    }
}

/// Answers each connection with the next of these responses, and further ones not at all. Returns the server's URL.
pub async fn scripted(responses: &'static [&'static str]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base_url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let mut open = Vec::new();
        let mut responses = responses.iter();
        while let Ok((mut stream, _)) = listener.accept().await {
            if let Some(response) = responses.next() {
                let mut request = [0; 4096];
                let _ = stream.read(&mut request).await;
                let _ = stream.write_all(response.as_bytes()).await;
                let _ = stream.shutdown().await;
            }
            open.push(stream);
        }
    });
    base_url
}
