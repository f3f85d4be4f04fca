//! Checks the secrets that subscriptions and the ingress name: each must exist, and the function
//! must be allowed to read it. The values are not read. Therefore, a missing member or a wrong
//! value is not detected.

use std::collections::BTreeMap;

use adapters::settings::publisher_key;
use aws_config::SdkConfig;
use aws_sdk_secretsmanager as secretsmanager;
use aws_sdk_ssm as ssm;
use aws_sdk_ssm::types::ParameterStringFilter;
use delivery::subscription::catalogue::Catalogue;
use delivery::subscription::secret::SecretName;
use futures::stream::{self, StreamExt as _};
use secretsmanager::error::ProvideErrorMetadata as _;

use super::failed;
use super::functions::Function;
use super::item::Item;
use crate::operations::queues::DISPATCH;
use crate::operations::stack::Stack;
use crate::terminal::text;
use delivery::subscription::aws::covers;

/// The maximum number of secrets that are looked up concurrently.
const AT_ONCE: usize = 4;

/// A secret that a function needs, and the subscription or the ingress that names it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Needed {
    name: SecretName,
    by: String,
    /// The name of the template parameter that permits the function to read the secret.
    parameter: &'static str,
}

/// The result of looking up a secret by its name.
#[derive(Debug, PartialEq, Eq)]
enum Found {
    /// The secret exists, and has this ARN.
    At(String),
    Missing,
    /// The secret is scheduled for deletion.
    Deleted,
}

pub(super) async fn examine(
    aws: &SdkConfig,
    stack: &Stack,
    functions: &[Function],
    catalogue: Option<&Catalogue>,
) -> Vec<Item> {
    let needed = needed(stack, catalogue);
    let count = needed.len() as u64;
    let clients = (secretsmanager::Client::new(aws), ssm::Client::new(aws));
    let dispatch = functions.iter().find(|function| function.output == DISPATCH);
    let looked_up = stream::iter(&needed).map(|secret| look_up(&clients, stack, dispatch, secret));
    let items: Vec<Option<Item>> = looked_up.buffered(AT_ONCE).collect().await;
    let mut items: Vec<Item> = items.into_iter().flatten().collect();
    if needed.iter().any(|secret| is_stored(&secret.name))
        && dispatch.is_some_and(|function| !function.has_layers())
    {
        let message = "the functions do not have the secrets extension";
        let help = "set the parameter SecretsExtensionLayerArn of the stack";
        items.push(Item::error("secrets", message, help));
    }
    // Without the subscriptions, it is unknown which secrets are needed.
    if items.is_empty() && catalogue.is_some() {
        let message = match count {
            0 => "no secrets are needed".to_owned(),
            _ => format!("the functions can read all {}", text::counted(count, "name")),
        };
        items.push(Item::ok("secrets", message));
    }
    items
}

/// Returns true if the function reads the secret through the secrets extension.
fn is_stored(name: &SecretName) -> bool {
    match name {
        SecretName::Environment(_) => false,
        SecretName::SecretsManager { .. } | SecretName::Parameter(_) => true,
    }
}

/// Returns each needed secret once, with the first subscription that names it.
fn needed(stack: &Stack, catalogue: Option<&Catalogue>) -> Vec<Needed> {
    let mut all: BTreeMap<&SecretName, String> = BTreeMap::new();
    for subscription in catalogue.into_iter().flat_map(Catalogue::subscriptions) {
        for (name, _) in subscription.destination.secrets_with_addresses() {
            all.entry(name).or_insert_with(|| subscription.name.to_string());
        }
    }
    let of_subscriptions = all.into_iter().map(|(name, by)| {
        let name = name.clone();
        Needed { name, by, parameter: "SecretArns" }
    });
    let of_ingress = stack.list("PublisherKeyArns").filter_map(|arn| {
        let (name, by) = (publisher_key(arn).ok()?, "the ingress".to_owned());
        Some(Needed { name, by, parameter: "PublisherKeyArns" })
    });
    of_subscriptions.chain(of_ingress).collect()
}

/// Returns the problem with a secret; `None` if the function can read it.
async fn look_up(
    (secretsmanager, ssm): &(secretsmanager::Client, ssm::Client),
    stack: &Stack,
    dispatch: Option<&Function>,
    secret: &Needed,
) -> Option<Item> {
    let found = match &secret.name {
        SecretName::Environment(variable) => {
            let is_missing =
                dispatch.is_some_and(|function| !function.variables.contains(variable));
            return is_missing.then(|| no_variable(secret, variable));
        }
        SecretName::SecretsManager { id, .. } => of_secrets_manager(secretsmanager, id).await,
        SecretName::Parameter(name) => of_parameter_store(ssm, stack, name).await,
    };
    match found {
        Ok(found) => judge(secret, &found, stack),
        Err(why) => Some(Item::not_checked(item_of(secret), &why)),
    }
}

async fn of_secrets_manager(client: &secretsmanager::Client, id: &str) -> anyhow::Result<Found> {
    let answer = client.describe_secret().secret_id(id).send().await;
    if answer.as_ref().is_err_and(|error| error.code() == Some("ResourceNotFoundException")) {
        return Ok(Found::Missing);
    }
    let answer = failed(answer, || "the secret cannot be looked up".to_owned())?;
    Ok(match (answer.deleted_date, answer.arn) {
        (Some(_), _) => Found::Deleted,
        (None, arn) => Found::At(arn.unwrap_or_default()),
    })
}

async fn of_parameter_store(
    client: &ssm::Client,
    stack: &Stack,
    name: &str,
) -> anyhow::Result<Found> {
    // Remove a version or label after the name, and the part of an ARN before it.
    let name = name.rsplit_once(":parameter").map_or(name, |(_, name)| name);
    let name = name.split(':').next().unwrap_or(name);
    let filter = ParameterStringFilter::builder().key("Name").values(name).build()?;
    let answer = client.describe_parameters().parameter_filters(filter).send().await;
    let answer = failed(answer, || "the secret cannot be looked up".to_owned())?;
    let is_there = answer.parameters().iter().any(|parameter| parameter.name() == Some(name));
    let prefix = stack.arn_of("ssm").unwrap_or_default();
    let arn = || format!("{prefix}:parameter/{}", name.trim_start_matches('/'));
    Ok(if is_there { Found::At(arn()) } else { Found::Missing })
}

fn item_of(secret: &Needed) -> String {
    format!("secret {}", secret.name)
}

fn no_variable(secret: &Needed, variable: &str) -> Item {
    let message = format!(
        "{} needs this secret, but dispatch has no environment variable {variable}",
        secret.by
    );
    let help = "set the variable in Environment of DispatchFunction in the template, or keep the \
                secret in a store";
    Item::error(item_of(secret), message, help)
}

fn judge(secret: &Needed, found: &Found, stack: &Stack) -> Option<Item> {
    let Needed { by, parameter, .. } = secret;
    let (message, help) = match found {
        Found::Missing => (
            format!("{by} needs this secret, but it does not exist"),
            "create it in the account and region of the stack, or correct the name".to_owned(),
        ),
        Found::Deleted => (
            format!("{by} needs this secret, but it is scheduled for deletion"),
            "restore it with aws secretsmanager restore-secret, or use another secret".to_owned(),
        ),
        Found::At(arn) if stack.list(parameter).any(|pattern| covers(pattern, &[arn])) => {
            return None;
        }
        Found::At(arn) => (
            format!("{by} needs this secret, but the function has no permission to read it"),
            format!("add {arn} to the parameter {parameter} of the stack"),
        ),
    };
    Some(Item::error(item_of(secret), message, help))
}

#[cfg(test)]
mod tests {
    use super::super::item::State;
    use super::*;

    const ARN: &str = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:billing-AbCdEf";

    #[test]
    fn the_keys_of_publishers_are_needed_by_the_ingress() {
        let parameter = "arn:aws:ssm:eu-west-1:123456789012:parameter/publishers/orders";
        let arns = format!("{ARN}, {parameter}");
        let needed = needed(&Stack::sample(&[("PublisherKeyArns", &arns)], &[]), None);
        let names: Vec<String> = needed.iter().map(|key| key.name.to_string()).collect();
        assert_eq!(names, [format!("secretsmanager:{ARN}"), format!("ssm:{parameter}")]);
        assert!(
            needed
                .iter()
                .all(|key| (key.by.as_str(), key.parameter) == ("the ingress", "PublisherKeyArns"))
        );
    }

    #[test]
    fn a_secret_that_is_missing_deleted_or_not_named_by_the_stack_is_an_error_that_says_what_to_do()
    {
        let secret = Needed {
            name: "secretsmanager:billing#token".parse().unwrap(),
            by: "shop/orders/billing".to_owned(),
            parameter: "SecretArns",
        };
        let judged =
            |found, arns| judge(&secret, &found, &Stack::sample(&[("SecretArns", arns)], &[]));
        let at = || Found::At(ARN.to_owned());
        assert_eq!(
            judged(
                at(),
                "arn:x, arn:aws:secretsmanager:eu-west-1:123456789012:secret:billing-??????"
            ),
            None
        );
        for (found, expected) in [
            (at(), format!("add {ARN} to the parameter SecretArns")),
            (Found::Missing, "create it".to_owned()),
            (Found::Deleted, "restore-secret".to_owned()),
        ] {
            let item = judged(found, "arn:x").expect("a finding");
            assert_eq!(item.state, State::Error);
            assert!(item.line().starts_with(
                "error    secret secretsmanager:billing#token: shop/orders/billing needs this \
                 secret"
            ));
            assert!(item.line().contains(&expected), "{}", item.line());
        }
    }
}
