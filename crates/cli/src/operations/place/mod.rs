//! Defines the deployment on which a command works: a deployed stack, a `lastmile dev`, or single
//! resources that options name.
//!
//! [`options`] declares the options. All commands resolve them here, so that an option means the
//! same everywhere. The order of precedence for each resource is: the option that names the
//! resource, the stack, the `lastmile dev` that `--to` names, the `lastmile dev` of the working
//! folder.
//!
//! Promises: a stack is described at most once, and only if one of its resources is needed.

mod dev;
mod options;

use std::path::PathBuf;

use adapters::live_topics::Location;
use adapters::table::DynamoTable;
use anyhow::Context as _;
use aws_sdk_sqs::Client;
use deadletters::DeadLetters;
use deadletters::container::LOCAL_CONTAINER;
use local::aws::{TABLE, local_clients};
use tokio::sync::OnceCell;
use url::Url;

use self::dev::Dev;
pub(crate) use self::dev::{DEFAULT_AWS_ENDPOINT, default_aws_endpoint};
use self::options::{ContainerArg, IngressArg, QueueUrlArg, TableArg, To, ToArg};
pub(crate) use self::options::{
    DeadLettersPlace, DestinationsPlace, OTHER_PLACES, PublishPlace, ReplayPlace, StackArg,
    SubscriptionsPlace,
};
use crate::operations::container;
use crate::operations::queue::{self, DeploymentQueue};
use crate::operations::shell;
use crate::operations::stack::{self, Stack};
use crate::terminal::text;
use crate::terminal::usage::usage_error;

/// The deployment on which a command works, as the options of the command specify.
#[derive(Debug, Default)]
pub(crate) struct Place {
    stack: StackArg,
    to: ToArg,
    table: TableArg,
    container: ContainerArg,
    queue_url: QueueUrlArg,
    ingress: IngressArg,
    /// The description of the stack, which is read on first use.
    described: OnceCell<Stack>,
}

impl Place {
    /// Returns the name of the stack, if the options name one.
    pub(crate) fn stack_name(&self) -> Option<&str> {
        self.stack.stack.as_deref()
    }

    /// Returns the description of the stack, if the options name one.
    ///
    /// # Errors
    /// If the stack cannot be described.
    pub(crate) async fn stack(&self) -> anyhow::Result<Option<&Stack>> {
        let Some(name) = self.stack_name() else { return Ok(None) };
        self.described.get_or_try_init(|| Stack::describe(name)).await.map(Some)
    }

    /// Returns true if `--to` or `--stack` specifies where the subscriptions are.
    pub(crate) fn has_subscriptions(&self) -> bool {
        self.to.to.is_some() || self.stack.stack.is_some()
    }

    /// Returns the location of the subscriptions.
    ///
    /// # Errors
    /// If the stack cannot be described, or there is no `lastmile dev` in the folder.
    pub(crate) async fn subscriptions(&self) -> anyhow::Result<Location> {
        match (&self.to.to, self.stack().await?) {
            (Some(To::Subscriptions(location)), _) => Ok(location.clone()),
            (Some(To::Dev(folder)), _) => Ok(Dev::in_folder(folder)?.subscriptions()),
            (None, Some(stack)) => stack.subscriptions(),
            (None, None) if self.table.table.is_some() => Err(usage_error(
                "--to is missing: specify the location of the subscriptions, or replace --table with --stack",
            )),
            (None, None) => Ok(Dev::here()?.subscriptions()),
        }
    }

    /// Checks that a command with files does not also name the subscriptions of a deployment. If a
    /// command has files, `--stack` and the folder of a `lastmile dev` only select the state of
    /// destinations.
    ///
    /// # Errors
    /// A usage error that names the first file.
    pub(crate) fn check_beside_files(&self, files: &[PathBuf]) -> anyhow::Result<()> {
        match (files.first(), &self.to.to) {
            (Some(file), Some(To::Subscriptions(_))) => Err(usage_error(format!(
                "--to reads the subscriptions of a deployment, but {} is a file: remove one of them",
                text::path(file)
            ))),
            (None, _) | (_, Some(To::Dev(_)) | None) => Ok(()),
        }
    }

    /// Returns the table with the state of destinations.
    ///
    /// # Errors
    /// If no option names the table and no `lastmile dev` runs, or the stack cannot be described.
    pub(crate) async fn table(&self) -> anyhow::Result<DynamoTable> {
        match (self.named_table().await?, &self.to.to) {
            (Some(table), _) => Ok(table),
            (None, Some(_)) => Err(usage_error(
                "--table is missing: specify the table of the deployment, or replace --to with --stack",
            )),
            (None, None) => dev_table(&Dev::here()?),
        }
    }

    /// Returns the table with the state of destinations; `None` if no option names it.
    ///
    /// # Errors
    /// If the named `lastmile dev` does not run, or the stack cannot be described.
    pub(crate) async fn named_table(&self) -> anyhow::Result<Option<DynamoTable>> {
        let table = match (&self.table.table, &self.to.to, self.stack().await?) {
            (Some(_), Some(To::Dev(_)), _) => {
                return Err(usage_error(
                    "--table is for a deployment in AWS; omit it if --to is the folder of `lastmile dev`",
                ));
            }
            (Some(name), _, _) => DynamoTable::new(&stack::aws().await, name.clone()),
            (None, Some(To::Dev(folder)), _) => dev_table(&Dev::in_folder(folder)?)?,
            (None, _, Some(stack)) => stack.table().await?,
            (None, Some(To::Subscriptions(_)) | None, None) => return Ok(None),
        };
        Ok(Some(table))
    }

    /// Opens the container of dead letters.
    ///
    /// # Errors
    /// If the stack cannot be described, or the container does not exist.
    pub(crate) async fn dead_letters(&self) -> anyhow::Result<DeadLetters> {
        if let Some(address) = &self.container.container {
            return container::at(address).await;
        }
        match self.stack().await? {
            Some(stack) => container::of_stack(stack).await,
            None => container::at(LOCAL_CONTAINER).await,
        }
    }

    /// Formats the options that select this container of dead letters, for a command that is
    /// printed.
    pub(crate) fn dead_letter_options(&self) -> String {
        let options =
            [("--container", self.container.container.as_deref()), ("--stack", self.stack_name())];
        let given = options.into_iter().filter_map(|(name, value)| Some((name, value?)));
        given.map(|(name, value)| format!(" {name} {}", shell::typed(value))).collect()
    }

    /// Returns the URL of the HTTP ingress, if the options name one.
    pub(crate) fn ingress(&self) -> Option<&Url> {
        self.ingress.ingress.as_ref()
    }

    /// Returns the URL of the queue, if the options name one.
    pub(crate) fn queue_url(&self) -> Option<&Url> {
        self.queue_url.queue_url.as_ref()
    }

    /// Returns the URL of a queue.
    ///
    /// # Errors
    /// - The stack does not have the queue or cannot be described.
    /// - The named `lastmile dev` does not run.
    /// - The dead letters are in a bucket, and no option names a queue.
    pub(crate) async fn queue(&self, queue: DeploymentQueue) -> anyhow::Result<Url> {
        if let Some(url) = self.queue_url() {
            return Ok(url.clone());
        }
        let url = match (self.stack().await?, &self.to.to) {
            (Some(stack), _) => stack.output(queue.output())?.to_owned(),
            (None, Some(To::Dev(folder))) => queue.url_at(&Dev::in_folder(folder)?.aws_endpoint()?),
            (None, _) if self.has_bucket() => return Err(no_queue_for_bucket()),
            (None, Some(To::Subscriptions(_)) | None) => queue.url_at(&default_aws_endpoint()),
        };
        url.parse().with_context(|| format!("the queue URL {url} is not valid"))
    }

    /// Returns true if an option names a bucket of dead letters.
    fn has_bucket(&self) -> bool {
        self.container.container.as_ref().is_some_and(|address| address.starts_with("s3://"))
    }

    /// Creates a client for a queue, and checks that the queue responds.
    ///
    /// # Errors
    /// If the queue does not respond, or the stack cannot be described.
    pub(crate) async fn reach(&self, queue: &Url) -> anyhow::Result<Client> {
        queue::reach(self.stack().await?, queue).await
    }
}

/// Creates the error for dead letters in a bucket if no option names a queue. The dead letters may
/// belong to any deployment, so the queues of this machine are not a safe default.
pub(crate) fn no_queue_for_bucket() -> anyhow::Error {
    usage_error(
        "no queue is specified for the dead letters of a bucket: use --stack for the deployed stack, or --queue-url \
         for a queue",
    )
}

fn dev_table(dev: &Dev) -> anyhow::Result<DynamoTable> {
    Ok(DynamoTable::new(&local_clients(&dev.aws_endpoint()?), TABLE.to_owned()))
}
