//! Signal handling.

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::StartupError;

/// The signals that ask the service to stop.
pub struct StopSignals {
    terminate: Signal,
    interrupt: Signal,
    /// Set if a hangup must not end the process.
    hangup: Option<Signal>,
}

impl StopSignals {
    /// Installs the handlers, so that a signal during startup is not lost.
    ///
    /// # Errors
    /// If the operating system does not allow it.
    pub fn listen() -> Result<Self, StartupError> {
        Ok(StopSignals {
            terminate: signal(SignalKind::terminate()).map_err(StartupError::Signals)?,
            interrupt: signal(SignalKind::interrupt()).map_err(StartupError::Signals)?,
            hangup: None,
        })
    }

    /// Like [`listen`](Self::listen), and also handles SIGHUP, which asks a service to reload (OPS-9).
    ///
    /// # Errors
    /// If the operating system does not allow it.
    pub fn listen_and_survive_hangups() -> Result<Self, StartupError> {
        let hangup = signal(SignalKind::hangup()).map_err(StartupError::Signals)?;
        Ok(StopSignals {
            hangup: Some(hangup),
            ..Self::listen()?
        })
    }

    /// Waits for SIGTERM or Ctrl-C.
    pub async fn received(&mut self) {
        let hangups = async {
            match &mut self.hangup {
                Some(hangup) => {
                    while hangup.recv().await.is_some() {
                        tracing::info!(
                            "SIGHUP: reloading the TLS certificate, if there is one; other settings need a restart"
                        );
                    }
                }
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
            () = hangups => {}
        }
    }
}
