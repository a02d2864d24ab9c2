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
    #[cfg(target_os = "linux")]
    descriptors: Option<linux::Descriptors>,
}

impl ProcessMetrics {
    /// Creates the metrics of a service that starts now.
    pub fn new() -> Self {
        ProcessMetrics {
            began: SystemTime::now(),
            #[cfg(target_os = "linux")]
            descriptors: linux::Descriptors::open(),
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
        self.of_system(page)
    }
}

impl ProcessMetrics {
    #[cfg(target_os = "linux")]
    fn of_system(&self, page: &mut Page<'_>) -> fmt::Result {
        linux::process(page)?;
        match &self.descriptors {
            Some(descriptors) => descriptors.encode(page),
            None => Ok(()),
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn of_system(&self, _: &mut Page<'_>) -> fmt::Result {
        Ok(())
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::fmt;
    use std::sync::{Mutex, PoisonError};

    use nix::dir::Dir;
    use nix::fcntl::OFlag;
    use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit};
    use nix::sys::stat::Mode;

    use super::Page;

    /// The list of open file descriptors. It stays open, because a process that has used up its descriptors cannot open it, and
    /// the alert about them would lose its metric.
    #[derive(Debug)]
    pub struct Descriptors(Mutex<Dir>);

    impl Descriptors {
        pub fn open() -> Option<Self> {
            let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
            let list = Dir::open("/proc/self/fd", flags, Mode::empty()).ok()?;
            Some(Self(Mutex::new(list)))
        }

        pub fn encode(&self, page: &mut Page<'_>) -> fmt::Result {
            let open = {
                let mut list = self.0.lock().unwrap_or_else(PoisonError::into_inner);
                let entries = list.iter().flatten();
                entries
                    .filter(|entry| !entry.file_name().to_bytes().starts_with(b"."))
                    .count()
            };
            page.gauge("process_open_fds", "Open file descriptors", open)?;
            match getrlimit(Resource::RLIMIT_NOFILE) {
                Ok((most, _)) if most != RLIM_INFINITY => {
                    page.gauge("process_max_fds", "Maximum number of open file descriptors", most)
                }
                _ => Ok(()),
            }
        }
    }

    /// Writes the metrics of `/proc/self/stat`.
    pub fn process(page: &mut Page<'_>) -> fmt::Result {
        let Ok(stat) = procfs::process::Process::myself().and_then(|process| process.stat()) else {
            return Ok(());
        };
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
        page.gauge("process_threads", "Threads", stat.num_threads)
    }
}
