//! A connection's stream that records activity and lingers when it is closed.

use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

use super::Shared;
use super::activity::Activity;

/// Bytes discarded at a time.
const SCRATCH: usize = 16 * 1024;

/// A stream that lingers on shutdown if input may still arrive. The operating system resets a socket that is closed before its
/// input was read. A reset discards a response that the peer has not read yet.
pub(super) struct TrackedIo<T> {
    inner: T,
    activity: Arc<Activity>,
    shared: Arc<Shared>,
    linger: Option<Linger>,
    /// Bytes that are read again.
    start: Bytes,
}

struct Linger {
    end: Instant,
    pause_end: Instant,
    left: u64,
    timer: Pin<Box<Sleep>>,
}

impl<T> TrackedIo<T> {
    /// Wraps a stream and records its bytes in `activity`.
    pub fn new(inner: T, activity: Arc<Activity>, shared: Arc<Shared>) -> Self {
        TrackedIo {
            inner,
            activity,
            shared,
            linger: None,
            start: Bytes::new(),
        }
    }

    /// Returns bytes that were read to the stream, so that the next read returns them again.
    pub fn rewind(&mut self, bytes: &[u8]) {
        self.start = match self.start.is_empty() {
            true => Bytes::copy_from_slice(bytes),
            false => [bytes, &self.start].concat().into(),
        };
    }

    fn record_write(&self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        match &written {
            Poll::Ready(Ok(_)) => self.activity.record_sent(),
            Poll::Ready(Err(_)) => {}
            // A flush follows when everything is written.
            Poll::Pending => self.activity.record_unsent(true),
        }
        written
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for TrackedIo<T> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        if !self.start.is_empty() {
            let count = self.start.len().min(buf.remaining());
            buf.put_slice(&self.start.split_to(count));
            self.activity.record_received();
            return Poll::Ready(Ok(()));
        }
        ready!(Pin::new(&mut self.inner).poll_read(cx, buf))?;
        if buf.filled().len() > before {
            self.activity.record_received();
        }
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncRead + AsyncWrite + Unpin> AsyncWrite for TrackedIo<T> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write(cx, buf);
        self.record_write(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write_vectored(cx, bufs);
        self.record_write(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.inner).poll_flush(cx);
        self.activity.record_unsent(flushed.is_pending());
        flushed
    }

    /// Closes the writing side. If input may still arrive, discards it until the peer closes or a limit is reached.
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.linger.is_none() {
            ready!(Pin::new(&mut this.inner).poll_shutdown(cx))?;
            if !this.activity.has_unread_input() {
                return Poll::Ready(Ok(()));
            }
            this.activity.start_lingering();
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
                // The peer has closed or disconnected: it has read the response or never will.
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
