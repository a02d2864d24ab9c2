//! Processor time of processes, from `/proc`.

use std::fs;
use std::ops::Sub;

/// Ticks per second in `/proc/<pid>/stat`: the kernel's USER_HZ, which is 100 on all common platforms.
const TICKS_PER_SECOND: f64 = 100.0;

/// Seconds of processor time of the participating processes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cpu {
    /// The server under load: its main process and the children of that.
    pub server: f64,
    /// The database cluster: its main process and the children of that.
    pub postgres: f64,
    /// The load generator: this process.
    pub own: f64,
}

impl Cpu {
    /// Returns the processor time until now.
    pub fn now(server: Option<u32>, postgres: u32) -> Self {
        Self {
            server: server.map_or(0.0, of_tree),
            postgres: of_tree(postgres),
            own: of_process(std::process::id()),
        }
    }
}

impl Sub for Cpu {
    type Output = Self;

    fn sub(self, earlier: Self) -> Self {
        Self {
            server: self.server - earlier.server,
            postgres: self.postgres - earlier.postgres,
            own: self.own - earlier.own,
        }
    }
}

/// Returns the load average of the last minute; 0 if it is unknown.
pub fn load_average() -> f64 {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let first = text.split_whitespace().next();
    first.and_then(|average| average.parse().ok()).unwrap_or_default()
}

/// Times from `/proc/<pid>/stat`, in seconds.
struct Stat {
    parent: u32,
    own: f64,
    /// Time of children that have ended and were waited for.
    ended: f64,
}

fn stat(process: &str) -> Option<Stat> {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The second field is the name in parentheses, which may contain any characters.
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = |place: usize| {
        fields
            .get(place)?
            .parse::<f64>()
            .ok()
            .map(|ticks| ticks / TICKS_PER_SECOND)
    };
    Some(Stat {
        parent: fields.get(1)?.parse().ok()?,
        own: ticks(11)? + ticks(12)?,
        ended: ticks(13)? + ticks(14)?,
    })
}

fn of_process(process: u32) -> f64 {
    stat(&process.to_string()).map_or(0.0, |stat| stat.own)
}

fn of_tree(root: u32) -> f64 {
    let Some(main) = stat(&root.to_string()) else {
        return 0.0;
    };
    let children = fs::read_dir("/proc").into_iter().flatten().flatten();
    let children = children.filter_map(|entry| {
        let name = entry.file_name();
        stat(
            name.to_str()
                .filter(|name| name.starts_with(|first: char| first.is_ascii_digit()))?,
        )
    });
    main.own
        + main.ended
        + children
            .filter(|child| child.parent == root)
            .map(|child| child.own)
            .sum::<f64>()
}
