//! Shell completions and man pages, generated from a command line's definition.

use std::io;
use std::path::Path;

use clap::Command;
pub use clap_complete::Shell;

use crate::output::Output;

/// Prints shell completions for the program `name`.
///
/// # Errors
/// If standard output cannot be written.
pub fn completions(mut command: Command, name: &str, shell: Shell) -> io::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, name, &mut script);
    Output::raw(script).print(false)
}

/// Writes the man pages into a folder and prints where they are.
///
/// # Errors
/// If the folder cannot be written.
pub fn pages(command: Command, folder: &Path) -> Result<(), String> {
    let name = command.get_name().to_owned();
    let failed = |error| format!("failed to write into {}: {error}", folder.display());
    std::fs::create_dir_all(folder).map_err(failed)?;
    clap_mangen::generate_to(command, folder).map_err(failed)?;
    let folder = folder.display();
    println!("Wrote the man pages to {folder}. Read them with: man {folder}/{name}.1");
    Ok(())
}
