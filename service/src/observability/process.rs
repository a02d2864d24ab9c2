//! What the operating system says of the process, under the names that every Prometheus client gives it.

use std::fmt;
use std::time::SystemTime;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;

use super::page::Page;

/// Reads them at each scrape; where there is no `/proc`, tells when the service began and nothing else.
#[derive(Debug)]
pub(super) struct ProcessMetrics {
    /// By this process's own word: from `/proc` it takes the machine's start, which a hardened unit hides.
    began: SystemTime,
}

impl ProcessMetrics {
    /// Of a service that begins now.
    pub fn new() -> Self {
        ProcessMetrics {
            began: SystemTime::now(),
        }
    }
}

impl Collector for ProcessMetrics {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let page = &mut Page(encoder);
        page.gauge(
            "process_start_time_seconds",
            "When the service began, in seconds since 1970",
            self.began.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default(),
        )?;
        of_system(page)
    }
}

#[cfg(target_os = "linux")]
fn of_system(page: &mut Page<'_>) -> fmt::Result {
    // What cannot be read is left out: a process without /proc still has its other metrics.
    let Ok(process) = procfs::process::Process::myself() else {
        return Ok(());
    };
    if let Ok(stat) = process.stat() {
        page.counter(
            "process_cpu_seconds",
            "Processor time, of user and system",
            (stat.utime + stat.stime) as f64 / procfs::ticks_per_second() as f64,
        )?;
        page.gauge(
            "process_resident_memory_bytes",
            "Resident memory",
            stat.rss * procfs::page_size(),
        )?;
        page.gauge("process_virtual_memory_bytes", "Virtual memory", stat.vsize)?;
        page.gauge("process_threads", "Threads", stat.num_threads)?;
    }
    if let Ok(open) = process.fd_count() {
        page.gauge("process_open_fds", "Open file descriptors", open)?;
    }
    if let Ok(limits) = process.limits()
        && let procfs::process::LimitValue::Value(most) = limits.max_open_files.soft_limit
    {
        page.gauge("process_max_fds", "The most file descriptors that may be open", most)?;
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn of_system(_: &mut Page<'_>) -> fmt::Result {
    Ok(())
}
