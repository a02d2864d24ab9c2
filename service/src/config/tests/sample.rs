//! The sample configuration, `deploy/partner-api.toml`. `RECORD=1` regenerates it.

use clap::{Args, Command};

use super::*;
use crate::config::options::{UNSET, examples};

const WIDTH: usize = 100;

/// Renders every option, commented out, with its help and its default or an example.
fn sample() -> String {
    let mut sample = "\
# Every option of `partner-api serve`, with its default. Remove the # in front of an option to set it.
# A flag (--pool-size) overrides its environment variable (PARTNER_API_POOL_SIZE), and the variable overrides this file.
"
    .to_owned();
    let defaults = toml::Table::try_from(Layer::default().with_defaults()).unwrap();
    let examples = examples();
    let mut heading = "";
    let command = Layer::augment_args(Command::new("serve"));
    for argument in command.get_arguments() {
        let option = argument.get_id().as_str();
        if argument.get_help_heading() != Some(heading) {
            heading = argument.get_help_heading().unwrap();
            sample += &format!("\n# {heading}\n# {}\n", "-".repeat(heading.len()));
        }
        let help = argument.get_help().unwrap().to_string();
        let help = help.split(" [env: ").next().unwrap();
        let value = match defaults.get(option) {
            Some(default) => default.clone(),
            None => examples[option].clone(),
        };
        let (_, unset) = UNSET.iter().find(|(name, _)| *name == option).unwrap();
        let unset = if unset.is_empty() {
            String::new()
        } else {
            format!(" Default: {unset}.")
        };
        sample += &format!("\n{}#{option} = {value}\n", comment(&format!("{help}.{unset}")));
        if option == "s3_access_key_id" {
            let help = "The secret of that access key.";
            sample += &format!("\n{}#s3_secret_access_key = \"…\"\n", comment(help));
        }
    }
    sample
}

fn comment(text: &str) -> String {
    let mut lines = vec![String::from("#")];
    for word in text.split_whitespace() {
        if lines.last().unwrap().chars().count() + 1 + word.chars().count() > WIDTH {
            lines.push(String::from("#"));
        }
        *lines.last_mut().unwrap() += &format!(" {word}");
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}

#[test]
fn the_sample_lists_every_option() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/partner-api.toml");
    let sample = sample();
    if env::var_os("RECORD").is_some() {
        fs::write(&path, &sample).unwrap();
    }
    let committed = fs::read_to_string(&path).unwrap();
    assert_eq!(
        committed, sample,
        "deploy/partner-api.toml is out of date; regenerate it with RECORD=1"
    );

    let values: String = sample
        .lines()
        .filter_map(|line| line.strip_prefix('#').filter(|option| !option.starts_with(' ')))
        .map(|option| format!("{option}\n"))
        .collect();
    let keys: toml::Table = values.parse().unwrap();
    assert_eq!(keys.len(), UNSET.len() + 1, "{values}");
    Layer::from_toml(&values).unwrap();
}
