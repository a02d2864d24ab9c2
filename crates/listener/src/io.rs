//! The bytes of a connection: seen as they come and go, and read on after the last answer.

use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

use super::Shared;
use super::pulse::Pulse;

/// Bytes read and dropped at a time.
const SCRATCH: usize = 16 * 1024;

/// A connection whose end lingers where it must: a socket that is closed while bytes still come is reset by the operating
/// system, and a reset takes the answer away from a peer that has not read it yet.
pub(super) struct Watched<T> {
    inner: T,
    pulse: Arc<Pulse>,
    shared: Arc<Shared>,
    linger: Option<Linger>,
}

struct Linger {
    end: Instant,
    pause_end: Instant,
    left: u64,
    timer: Pin<Box<Sleep>>,
}

impl<T> Watched<T> {
    /// A connection that notes on `pulse` what comes.
    pub fn new(inner: T, pulse: Arc<Pulse>, shared: Arc<Shared>) -> Self {
        Watched {
            inner,
            pulse,
            shared,
            linger: None,
        }
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Watched<T> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(cx, buf))?;
        if buf.filled().len() > before {
            self.pulse.heard();
        }
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Watched<T> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let count = ready!(Pin::new(&mut self.inner).poll_write(cx, buf))?;
        self.pulse.took();
        Poll::Ready(Ok(count))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let count = ready!(Pin::new(&mut self.inner).poll_write_vectored(cx, bufs))?;
        self.pulse.took();
        Poll::Ready(Ok(count))
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    /// Ends the writing side; then, where more may come, reads and drops it until the peer has ended too or a bound is
    /// reached.
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.linger.is_none() {
            ready!(Pin::new(&mut this.inner).poll_shutdown(cx))?;
            if !this.pulse.may_hear_more() {
                return Poll::Ready(Ok(()));
            }
            this.pulse.linger();
        }
        let limits = &this.shared.limits;
        let linger = this.linger.get_or_insert_with(|| {
            let now = Instant::now();
            let pause_end = now + limits.linger_pause;
            Linger {
                end: now + limits.linger,
                pause_end,
                left: limits.linger_bytes,
                timer: Box::pin(sleep_until(pause_end)),
            }
        });
        let mut scratch = [0; SCRATCH];
        loop {
            let mut buf = ReadBuf::new(&mut scratch);
            let read = Pin::new(&mut this.inner).poll_read(cx, &mut buf);
            let now = Instant::now();
            match read {
                Poll::Ready(Ok(())) if !buf.filled().is_empty() => {
                    linger.left = linger.left.saturating_sub(buf.filled().len() as u64);
                    linger.pause_end = now + limits.linger_pause;
                    if linger.left == 0 || now >= linger.end {
                        return Poll::Ready(Ok(()));
                    }
                }
                // The peer has ended, or is gone: the answer has reached it or never will.
                Poll::Ready(_) => return Poll::Ready(Ok(())),
                Poll::Pending => {
                    let deadline = linger.end.min(linger.pause_end);
                    if now >= deadline {
                        return Poll::Ready(Ok(()));
                    }
                    linger.timer.as_mut().reset(deadline);
                    ready!(linger.timer.as_mut().poll(cx));
                }
            }
        }
    }
}
