//! Runs the server until Ctrl-C. The environment variable `LISTEN` sets the address, which is 127.0.0.1:8080 by default.

use dropshot::ConfigDropshot;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let listen = std::env::var("LISTEN").unwrap_or_else(|_| "127.0.0.1:8080".into());
    let config = ConfigDropshot {
        bind_address: listen.parse()?,
        ..ConfigDropshot::default()
    };
    let server = petstore::serve(config)?;
    println!("serving at http://{}", server.local_addr());
    tokio::signal::ctrl_c().await?;
    Ok(server.close().await?)
}
