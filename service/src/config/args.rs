//! The arguments of `serve` and `migrate`.

use std::path::PathBuf;

use clap::Args;

use super::Layer;

/// The options of `serve` and `migrate`.
#[derive(Args, Clone, Debug, Default)]
pub struct ServeArgs {
    /// TOML file with any of the options below, named as their flags with _ for - (pool_size = 16)
    /// [env: PARTNER_API_CONFIG] [default: none]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// The options given as flags.
    #[command(flatten)]
    pub flags: Layer,
}
