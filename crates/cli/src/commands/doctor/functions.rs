//! Checks that the functions can be invoked, and reads the parts of their configuration that other
//! checks need.
//!
//! The values of environment variables stay in this module, because they may contain secrets.

use std::collections::BTreeSet;

use anyhow::Context as _;
use aws_config::SdkConfig;
use aws_sdk_lambda::Client;
use aws_sdk_lambda::types::{LastUpdateStatus, State};

use super::failed;
use super::item::Item;
use crate::operations::queues::{DEADLETTER, DISPATCH};
use crate::operations::stack::Stack;

/// The stack output with the name of the ingress function.
const INGRESS: &str = "IngressFunctionName";

/// The parts of a deployed function's configuration that other checks need.
#[derive(Debug, Clone, Default)]
pub(super) struct Function {
    /// The name of the stack output with the function's name.
    pub(super) output: &'static str,
    pub(super) role_arn: String,
    /// The names of the function's environment variables.
    pub(super) variables: BTreeSet<String>,
    has_layers: bool,
}

impl Function {
    /// Returns true if the function has layers. One of them may be the secrets extension.
    pub(super) fn has_layers(&self) -> bool {
        self.has_layers
    }
}

pub(super) async fn examine(aws: &SdkConfig, stack: &Stack) -> (Vec<Function>, Vec<Item>) {
    let client = Client::new(aws);
    let (mut functions, mut items) = (Vec::new(), Vec::new());
    for output in [DISPATCH, DEADLETTER, INGRESS] {
        // Without the output, the function does not exist, or another item reports the missing
        // output.
        let Ok(name) = stack.output(output) else { continue };
        match read(&client, output, name).await {
            Ok((function, None)) => functions.push(function),
            Ok((function, Some(why))) => {
                let help = "deploy the stack again; see the log of the function for its error";
                items.push(Item::error(name, why, help));
                functions.push(function);
            }
            Err(why) => items.push(Item::not_checked(name, &why)),
        }
    }
    if items.is_empty() {
        items.push(Item::ok("functions", format!("all {} can be invoked", functions.len())));
    }
    (functions, items)
}

/// Reads the configuration of a function. Also returns the reason if the function cannot be
/// invoked, or its last update failed.
async fn read(
    client: &Client,
    output: &'static str,
    name: &str,
) -> anyhow::Result<(Function, Option<String>)> {
    let answer = client.get_function_configuration().function_name(name).send().await;
    let answer = failed(answer, || "the configuration of the function cannot be read".to_owned())?;
    let problem = match (answer.state(), answer.last_update_status()) {
        // An inactive function is activated by its next invocation.
        (Some(State::Failed), _) => Some(("failed", answer.state_reason())),
        (_, Some(LastUpdateStatus::Failed)) => {
            Some(("was not updated", answer.last_update_status_reason()))
        }
        (_, _) => None,
    };
    let problem = problem
        .map(|(state, why)| format!("the function {state}: {}", why.unwrap_or("without a reason")));
    let variables = answer.environment().and_then(|environment| environment.variables());
    let function = Function {
        output,
        role_arn: answer.role().context("the function has no role")?.to_owned(),
        variables: variables.into_iter().flat_map(|variables| variables.keys().cloned()).collect(),
        has_layers: !answer.layers().is_empty(),
    };
    Ok((function, problem))
}
