//! Signals: what stops the service, and what does not.

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::StartupError;

/// The signals that ask the service to stop.
pub struct StopSignals {
    terminate: Signal,
    interrupt: Signal,
    /// Where a hangup is not to end the process.
    hangup: Option<Signal>,
}

impl StopSignals {
    /// Listens from now on, so that a signal during the start is not lost.
    ///
    /// # Errors
    /// When the operating system does not let it.
    pub fn listen() -> Result<Self, StartupError> {
        Ok(StopSignals {
            terminate: signal(SignalKind::terminate()).map_err(StartupError::Signals)?,
            interrupt: signal(SignalKind::interrupt()).map_err(StartupError::Signals)?,
            hangup: None,
        })
    }

    /// The same, for a process that a hangup shall not end: it is what asks a service to read again what it can (OPS-9).
    ///
    /// # Errors
    /// When the operating system does not let it.
    pub fn listen_and_outlive_hangups() -> Result<Self, StartupError> {
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
                            "SIGHUP: the certificate's files are looked at, if there are any; nothing else is read again while the \
                         service runs"
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
