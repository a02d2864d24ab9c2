//! Time that processes spent on the processors, from `/proc`.

use std::fs;
use std::ops::Sub;

/// Ticks a second in `/proc/<pid>/stat`: the kernel's USER_HZ, 100 wherever Linux runs.
const TICKS: f64 = 100.0;

/// Seconds of processor time, of everything that takes part.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cpu {
    /// The server under load.
    pub server: f64,
    /// The cluster: its main process and all that it started.
    pub postgres: f64,
    /// The load generator: this process.
    pub own: f64,
}

impl Cpu {
    /// What has been spent until now.
    pub fn now(server: Option<u32>, postgres: u32) -> Self {
        Self {
            server: server.map_or(0.0, of_process),
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

/// How many processes ran or waited for a processor on average over the last minute; 0 where that is not known.
pub fn load_average() -> f64 {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let first = text.split_whitespace().next();
    first.and_then(|average| average.parse().ok()).unwrap_or_default()
}

/// What `/proc/<pid>/stat` says of a process, in seconds.
struct Stat {
    parent: u32,
    own: f64,
    /// Of its children that have ended and been waited for.
    ended: f64,
}

fn stat(process: &str) -> Option<Stat> {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The second field is the name in parentheses, which may hold anything.
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = |place: usize| fields.get(place)?.parse::<f64>().ok().map(|ticks| ticks / TICKS);
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
