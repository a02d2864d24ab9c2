//! Metrics of the process, under the standard names of Prometheus clients.

use std::fmt;
use std::time::SystemTime;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;

use super::page::Page;

/// Reads the metrics at each scrape. Without `/proc`, only the start time is available.
#[derive(Debug)]
pub(super) struct ProcessMetrics {
    /// Read from the clock, because computing it from `/proc` requires the boot time, which a hardened systemd unit hides.
    began: SystemTime,
}

impl ProcessMetrics {
    /// Creates the metrics of a service that starts now.
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
            "Start time of the service, in Unix time",
            self.began.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default(),
        )?;
        of_system(page)
    }
}

#[cfg(target_os = "linux")]
fn of_system(page: &mut Page<'_>) -> fmt::Result {
    // Without /proc, the other metrics are still available.
    let Ok(process) = procfs::process::Process::myself() else {
        return Ok(());
    };
    if let Ok(stat) = process.stat() {
        page.counter(
            "process_cpu_seconds",
            "User and system CPU time",
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
        page.gauge("process_max_fds", "Maximum number of open file descriptors", most)?;
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn of_system(_: &mut Page<'_>) -> fmt::Result {
    Ok(())
}
