//! `lastmile secret`: prints a new signing secret or key pair, and how to install it.
//!
//! The keys go only to standard output, so that a shell or a secret store can read them. The next
//! steps go to standard error, and never contain a secret, because logs may include them.

use std::process::ExitCode;

use adapters::machine::Machine;
use anyhow::Context as _;
use delivery::request::new_key::{KeyPair, key_pair, shared_secret};
use delivery::subscription::public_key::{PRIVATE_PREFIX, PublicKey};
use serde_json::json;

use crate::terminal::help::{OUTPUT, examples};
use crate::terminal::output::{Output, note};

/// The name of the environment variable that the printed steps use for the secret.
const VARIABLE: &str = "SIGNING_SECRET";

#[derive(Debug, clap::Args)]
#[command(
    after_long_help = examples!(
        "docs/guides/secrets.md",
        "lastmile secret",
        "lastmile secret --key-pair",
        "lastmile secret --output json",
    )
)]
pub(crate) struct Arguments {
    /// Generate an Ed25519 key pair instead: a private key for signing (whsk_) and a public key for
    /// receivers (whpk_)
    #[arg(long)]
    key_pair: bool,
    /// Output format
    #[arg(long, default_value = "table", value_name = "FORMAT", help_heading = OUTPUT)]
    output: Output,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let random =
        Machine.random_bytes().context("no random bytes are available; run the command again")?;
    let output = arguments.output;
    let steps = if arguments.key_pair {
        let KeyPair { private_key, public_key } = key_pair(random);
        let (private, public) = (private_key.expose(), public_key.to_string());
        let json = || json!({ "privateKey": private, "publicKey": public });
        output.write(false, json, || format!("{private}\n{public}\n"))?;
        key_pair_steps(&public_key)
    } else {
        let secret = shared_secret(random);
        let json = || json!({ "secret": secret.expose() });
        output.write(false, json, || format!("{}\n", secret.expose()))?;
        secret_steps()
    };
    if output == Output::Table {
        note(steps);
    }
    Ok(ExitCode::SUCCESS)
}

/// Describes how to install a shared secret.
fn secret_steps() -> String {
    format!(
        "lastmile dev: export {VARIABLE}=whsec_…; in the subscription, signing: {{secrets: \
         [\"env:{VARIABLE}\"]}}\n{}\nreceiver: use the same secret; lastmile subscriber --secret \
         env:{VARIABLE} verifies signatures",
        stack_step()
    )
}

/// Describes how to install a key pair.
fn key_pair_steps(public_key: &PublicKey) -> String {
    format!(
        "lastmile dev: export {VARIABLE}={PRIVATE_PREFIX}…; in the subscription, signing: \
         {{secrets: [\"env:{VARIABLE}\"], publicKeys: [\"{public_key}\"]}}\n{}\nreceiver: use \
         only the public key",
        stack_step()
    )
}

/// Describes how to give a secret to a deployed stack.
fn stack_step() -> String {
    format!(
        "stack: aws secretsmanager create-secret --region REGION --name NAME --secret-string \"${VARIABLE}\"; \
         in the subscription, \"secretsmanager:NAME\""
    )
}
