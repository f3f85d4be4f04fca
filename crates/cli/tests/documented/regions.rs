//! Commands of the AWS CLI run as pasted. Each page explains before the first one how to set a
//! region and credentials.

use std::fs;

use crate::pages::{self, Block, Page};

/// The variable that sets the region in every version of the AWS CLI and of `sam`.
const REGION: &str = "AWS_DEFAULT_REGION=";
/// The variables that set the credentials: those of a profile, or any for `lastmile dev`.
const CREDENTIALS: [&str; 2] = ["AWS_PROFILE=", "AWS_ACCESS_KEY_ID="];

/// Returns the commands of a page that fail with "You must specify a region" or "Unable to locate
/// credentials".
fn failing(page: &Page, text: &str) -> Vec<String> {
    let commands = page.blocks.iter().filter(|block| block.is("sh aws")).flat_map(Block::commands);
    let commands = commands.filter(|(_, command)| command.contains("aws "));
    let fails = |(line, command): &(usize, String)| {
        let before: String = text.lines().take(*line).collect();
        let has_region = command.contains("--region ") || before.contains(REGION);
        !has_region || !CREDENTIALS.iter().any(|variable| before.contains(variable))
    };
    let failing = commands.filter(fails);
    failing.map(|(line, command)| format!("{}:{line}: {command}", page.name)).collect()
}

#[test]
fn every_command_of_the_aws_cli_has_a_region_and_credentials() {
    let pages = pages::manual();
    let failing = pages.iter().flat_map(|page| {
        let text = fs::read_to_string(pages::root().join(&page.name)).expect("a page");
        failing(page, &text)
    });
    let failing: Vec<String> = failing.collect();
    assert!(failing.is_empty(), "set {REGION} and {CREDENTIALS:?} before:\n{}", failing.join("\n"));
}

#[test]
fn a_command_without_region_or_credentials_is_found() {
    let block = "```sh aws\naws s3 ls\n```\n";
    let with_region = "```sh aws\naws s3 ls --region us-east-1\n```\n";
    for (text, count) in [
        (block.to_owned(), 1),
        (format!("`export AWS_DEFAULT_REGION=eu-west-1`\n{block}"), 1),
        (format!("`export AWS_PROFILE=work`\n{block}"), 1),
        (format!("{block}`export AWS_DEFAULT_REGION=eu-west-1 AWS_PROFILE=work`\n"), 1),
        (format!("`export AWS_DEFAULT_REGION=eu-west-1 AWS_PROFILE=work`\n{block}"), 0),
        (format!("`export AWS_ACCESS_KEY_ID=any`\n{with_region}"), 0),
    ] {
        assert_eq!(failing(&Page::parse("page.md", &text), &text).len(), count, "{text}");
    }
}
