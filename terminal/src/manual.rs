//! Completions and the manual, from the definitions of a command line.

use std::io;
use std::path::Path;

use clap::Command;
pub use clap_complete::Shell;

use crate::output::Output;

/// Prints the completions of a shell for the program of this name.
///
/// # Errors
/// Standard output cannot be written.
pub fn completions(mut command: Command, name: &str, shell: Shell) -> io::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, name, &mut script);
    Output::raw(script).print(false)
}

/// Writes the manual's pages into a folder, and says where they are.
///
/// # Errors
/// A sentence, when the folder cannot be written.
pub fn pages(command: Command, folder: &Path) -> Result<(), String> {
    let name = command.get_name().to_owned();
    let failed = |error| format!("cannot write into {}: {error}", folder.display());
    std::fs::create_dir_all(folder).map_err(failed)?;
    clap_mangen::generate_to(command, folder).map_err(failed)?;
    let folder = folder.display();
    println!("The manual is in {folder}: man {folder}/{name}.1");
    Ok(())
}
