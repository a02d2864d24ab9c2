//! Shell completions and manual pages.

use std::fs;
use std::process::Command;

use clap::CommandFactory as _;

#[path = "../../../src/cli.rs"]
#[allow(dead_code, unreachable_pub)]
mod cli;

fn program() -> Command {
    Command::new(env!("CARGO_BIN_EXE_partner-api"))
}

#[test]
fn every_command_has_a_manual_page() {
    let folder = tempfile::tempdir().unwrap();
    let output = program().arg("man").arg(folder.path()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let page = fs::read_to_string(folder.path().join("partner-api-key-rotate.1")).unwrap();
    assert!(page.contains("overlap"), "{page}");
    let mut expected = vec!["partner-api.1".to_owned()];
    names(&cli::Cli::command(), "partner-api", &mut expected);
    for name in expected {
        assert!(folder.path().join(&name).is_file(), "{name}");
    }
}

fn names(command: &clap::Command, path: &str, into: &mut Vec<String>) {
    for sub in command.get_subcommands() {
        let path = format!("{path}-{}", sub.get_name());
        into.push(format!("{path}.1"));
        names(sub, &path, into);
    }
}

#[test]
fn every_group_of_commands_has_examples() {
    for group in cli::Cli::command().get_subcommands() {
        let help = group.clone().render_help().to_string();
        assert!(help.contains("Example"), "{}", group.get_name());
    }
}

#[test]
fn bash_completes_the_commands() {
    let script = program().args(["completions", "bash"]).output().unwrap();
    assert!(script.status.success());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("completions");
    fs::write(&path, &script.stdout).unwrap();
    let script = format!(
        ". {}; COMP_WORDS=(partner-api key ro) COMP_CWORD=2; _partner-api partner-api ro key; echo \"${{COMPREPLY[@]}}\"",
        path.display()
    );
    let completed = Command::new("bash").args(["-c", &script]).output().unwrap();
    assert_eq!(
        String::from_utf8(completed.stdout).unwrap().trim(),
        "rotate",
        "{:?}",
        String::from_utf8(completed.stderr)
    );
}
