use clap::CommandFactory as _;
use partner_api_tests::{ALPHA, Service};
use partner_api_tool::cli::Cli;

use crate::program::Program;

/// Calls `check` with each command that runs something, and its name.
fn each_command(command: &clap::Command, name: &str, check: &mut dyn FnMut(&clap::Command, &str)) {
    let commands: Vec<_> = command
        .get_subcommands()
        .filter(|command| command.get_name() != "help")
        .collect();
    for command in commands {
        let name = format!("{name} {}", command.get_name());
        check(command, &name);
        each_command(command, &name, check);
    }
}

/// The width of a terminal.
const WIDTH: usize = 80;

#[test]
fn every_command_has_examples_that_fit_a_terminal() {
    each_command(&Cli::command(), "partner", &mut |command, name| {
        let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let (prose, examples) = text
            .split_once("Examples:\n")
            .unwrap_or_else(|| panic!("{name} has no examples"));
        assert!(examples.contains(&format!("  {name}")), "{name} is not in its examples");
        for line in examples.lines() {
            assert!(
                line.starts_with("  ") && line.chars().count() <= WIDTH,
                "{name}: {line}"
            );
        }
        // The help wraps a paragraph to the width of the terminal. Line breaks in it would remain.
        for paragraph in prose.split("\n\n") {
            assert!(!paragraph.trim().contains('\n'), "{name}: {paragraph}");
        }
    });
}

#[test]
fn the_help_of_a_command_lists_its_own_options_before_the_common_ones() {
    let mut built = Cli::command();
    built.build();
    each_command(&built, "partner", &mut |command, name| {
        let help = command.clone().render_help().to_string();
        let (own, common) = help
            .split_once("\nCommon options:\n")
            .unwrap_or_else(|| panic!("{name} has no common options: {help}"));
        for option in [
            "--profile",
            "--sandbox",
            "--as",
            "--base-url",
            "--key-id",
            "--secret-file",
            "--config",
            "--json",
        ] {
            let is_listed = |text: &str| text.lines().any(|line| line.trim_start().starts_with(option));
            assert!(!is_listed(own) && is_listed(common), "{name} {option}: {help}");
        }
    });
}

#[tokio::test]
async fn every_command_has_a_manual_page_and_bash_completes_the_commands() {
    let service = Service::start().await;
    let program = Program::new(&service, &ALPHA);
    assert_eq!(program.run(&["man", "man1"]).await.code, 0);
    let mut command = Cli::command();
    command.build();
    for command in command.get_subcommands().filter(|command| command.get_name() != "help") {
        assert!(
            program.path(format!("man1/partner-{}.1", command.get_name())).is_file(),
            "{}",
            command.get_name()
        );
    }
    let script = program.run(&["completions", "bash"]).await.stdout;
    std::fs::write(program.path("completions"), script).unwrap();
    let script = ". ./completions; COMP_WORDS=(partner inspections ph) COMP_CWORD=2; _partner partner ph inspections; \
                 echo \"${COMPREPLY[@]}\"";
    let mut bash = tokio::process::Command::new("bash");
    let completed = bash
        .args(["-c", script])
        .current_dir(program.folder.path())
        .output()
        .await
        .unwrap();
    assert_eq!(String::from_utf8(completed.stdout).unwrap().trim(), "photos");
}
