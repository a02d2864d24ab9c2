use clap::CommandFactory as _;
use partner_api_tests::{ALPHA, Service};
use partner_api_tool::cli::Cli;

use crate::program::Program;

/// Whoever reads `--help` of a command is shown how it is done.
#[test]
fn every_command_has_examples() {
    for command in Cli::command().get_subcommands() {
        let help = command.clone().render_help().to_string();
        assert!(help.contains("Example"), "{}", command.get_name());
    }
}

#[tokio::test]
async fn every_command_has_a_page_of_the_manual_and_bash_completes_them() {
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
    let asked = ". ./completions; COMP_WORDS=(partner inspections ph) COMP_CWORD=2; _partner partner ph inspections; \
                 echo \"${COMPREPLY[@]}\"";
    let mut bash = tokio::process::Command::new("bash");
    let completed = bash
        .args(["-c", asked])
        .current_dir(program.folder.path())
        .output()
        .await
        .unwrap();
    assert_eq!(String::from_utf8(completed.stdout).unwrap().trim(), "photos");
}
