//! What stands between a partner and the service: its address stays while services come and go, and it loses connections.

use std::sync::{Arc, Mutex};

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

pub struct Gateway {
    pub base_url: String,
    target: Arc<Mutex<Option<String>>>,
    connections: Arc<Mutex<JoinSet<()>>>,
}

impl Gateway {
    /// To the service of this address.
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

    /// From now on to this one, or nowhere.
    pub fn point(&self, base_url: Option<&str>) {
        let address = base_url.map(|url| url.trim_start_matches("http://").to_owned());
        *self.target.lock().unwrap() = address;
    }

    /// Breaks every connection, in whatever state it is.
    pub fn cut(&self) {
        self.connections.lock().unwrap().abort_all();
    }
}
