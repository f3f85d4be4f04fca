//! `lastmile destinations disable`, `enable` and `enable --once`: change the state of a
//! destination.
//!
//! Each change is written to the item of the destination first, and then published to all functions
//! (`delivery::delivery::health::news`). If a function writes the item at the same time, the change
//! is repeated on the newer version.

use std::process::ExitCode;

use adapters::machine::Machine;
use anyhow::{Context as _, bail};
use delivery::delivery::health::news::{DISABLED_MAX, News};
use delivery::delivery::health::notice::Notice;
use delivery::delivery::health::shared::DestinationState;
use delivery::delivery::reason::Reason;
use delivery::ports::Clock as _;
use delivery::subscription::topic_address;

use crate::operations::destinations::deployment::Deployment;
use crate::operations::destinations::entries::Updated;
use crate::operations::destinations::known::Destination;
use crate::operations::destinations::name::Name;
use crate::operations::place::{DestinationsPlace, Place};
use crate::operations::set_aside;
use crate::terminal::help::examples;
use crate::terminal::output::out;

/// The line that is printed after a change. Functions read published changes at the interval in
/// `functions/dispatch/src/news.rs`.
const KNOWN_WITHIN: &str = "functions read the change within 30 seconds";

#[derive(Debug, clap::Args)]
#[command(
    after_long_help = examples!(
        "docs/operate/destination-down.md",
        "lastmile destinations disable shop/orders/billing --stack orders-prod",
        "lastmile destinations disable http://127.0.0.1:9180/",
    )
)]
pub(super) struct ChangeArgs {
    #[command(flatten)]
    place: DestinationsPlace,
    /// Address of the destination, or a subscription that delivers to it. The command applies to all
    /// subscriptions with this destination
    #[arg(value_name = "ADDRESS|NS/TOPIC/NAME")]
    name: Name,
}

#[derive(Debug, clap::Args)]
#[command(
    after_long_help = examples!(
        "docs/operate/destination-down.md",
        "lastmile destinations enable shop/orders/billing --stack orders-prod",
        "lastmile destinations enable http://127.0.0.1:9180/",
        "lastmile destinations enable shop/orders/billing --once --stack orders-prod",
    )
)]
pub(super) struct EnableArgs {
    #[command(flatten)]
    change: ChangeArgs,
    /// Only end the wait before the next probe: the next due delivery probes the destination. The
    /// destination stays failing until a probe succeeds
    #[arg(long)]
    once: bool,
}

/// A destination to change, its deployment, and the options that name the deployment.
struct Change {
    place: Place,
    deployment: Deployment,
    destination: Destination,
    /// True if a subscription needs notices about the destination, or if the subscriptions cannot
    /// be read.
    notifies: bool,
    now_ms: u64,
}

struct Changed {
    /// The state of the destination after the change.
    state: DestinationState,
    /// True if the state differs from the previous one.
    is_new: bool,
}

pub(super) async fn disable(arguments: ChangeArgs) -> anyhow::Result<ExitCode> {
    let change = Change::of_requests(&arguments).await?;
    change.assert_one_more_may_be_disabled().await?;
    let now_ms = change.now_ms;
    let is_done = |state: &DestinationState| state.disabled.is_some();
    let changed = change.make(is_done, |state| state.disabled_by_operator(now_ms)).await?;
    let is_new = if changed.is_new { "disabled" } else { "already disabled" };
    change.report(
        &changed,
        &format!(
            "{is_new}: deliveries become dead letters (DestinationDisabled), which you can replay \
             after `lastmile destinations enable`"
        ),
    )
}

pub(super) async fn enable(
    EnableArgs { change: arguments, once }: EnableArgs,
) -> anyhow::Result<ExitCode> {
    if once {
        return enable_once(&arguments).await;
    }
    let change = Change::open(&arguments).await?;
    let now_ms = change.now_ms;
    let is_done = |state: &DestinationState| state.disabled.is_none();
    let changed = change.make(is_done, |state| state.enabled(now_ms)).await?;
    let result = match (changed.is_new, changed.state.is_healthy()) {
        (true, _) => "enabled: deliveries are attempted again",
        (false, true) => "already enabled",
        (false, false) => "already enabled, but not healthy; see `lastmile destinations show`",
    };
    let code = change.report(&changed, result)?;
    if changed.is_new {
        let subscriptions =
            change.destination.subscriptions.iter().map(|subscription| &subscription.name);
        let stack = change.place.stack().await?;
        set_aside::tell(stack, subscriptions, Reason::DestinationDisabled).await;
    }
    Ok(code)
}

async fn enable_once(arguments: &ChangeArgs) -> anyhow::Result<ExitCode> {
    let change = Change::of_requests(arguments).await?;
    let now_ms = change.now_ms;
    let is_done = |state: &DestinationState| {
        let waits = state.failing.is_some_and(|failing| now_ms < failing.until_ms);
        // The process that sent the probe may have ended since.
        let is_probed = state.probe_until_ms.is_some_and(|until_ms| now_ms < until_ms);
        state.disabled.is_some() || !(waits || is_probed)
    };
    let changed = change.make(is_done, |state| state.probed_now(now_ms)).await?;
    let state = &changed.state;
    if state.disabled.is_some() {
        let address = &change.destination.address;
        bail!(
            "{address} is disabled, so no delivery probes it. Use `lastmile destinations enable` \
             without --once"
        );
    }
    let result = match (state.failing, state.slow) {
        (Some(_), _) if changed.is_new => {
            "the next due delivery probes the destination; deferred deliveries keep their times"
        }
        (Some(_), _) => "the next due delivery already probes the destination",
        (None, Some(_)) => {
            "the destination is slow but not failing, so deliveries are already attempted"
        }
        (None, None) => "the destination is not failing, so deliveries are already attempted",
    };
    change.report(&changed, result)
}

impl Change {
    async fn open(arguments: &ChangeArgs) -> anyhow::Result<Self> {
        let place = Place::from(arguments.place.clone());
        let deployment = Deployment::open(&place).await?;
        let subscriptions = deployment.subscriptions_for(&arguments.name).await?;
        let destination = deployment.destination(&arguments.name, &subscriptions).await?;
        subscriptions.report();
        let notifies = subscriptions.want_notices_of(&destination);
        Ok(Self { place, deployment, destination, notifies, now_ms: Machine.now_ms() })
    }

    /// Opens the destination that the arguments name. Fails for a topic, which has no state.
    async fn of_requests(arguments: &ChangeArgs) -> anyhow::Result<Self> {
        let change = Self::open(arguments).await?;
        let address = &change.destination.address;
        let topic = address.parse().ok().and_then(|address| topic_address::topic_of(&address));
        if let Some(topic) = topic {
            bail!(
                "{} forwards events to the topic {topic} without requests, so it cannot be \
                 disabled or probed; use `paused: true` to stop a subscription",
                arguments.name
            );
        }
        Ok(change)
    }

    /// Checks that one more destination may be disabled. Functions read a limited number of
    /// published changes, and each disabled destination is one of these.
    async fn assert_one_more_may_be_disabled(&self) -> anyhow::Result<()> {
        let news = self.deployment.news().await?;
        let disabled = news.disabled();
        if disabled.len() >= DISABLED_MAX && !disabled.contains(&self.destination.key) {
            bail!(
                "{DISABLED_MAX} destinations are already disabled, which is the limit; use \
                 `paused: true` to stop a subscription"
            );
        }
        Ok(())
    }

    /// Changes the stored state, unless `is_done` returns true for this state. Publishes the state
    /// in both cases.
    async fn make(
        &self,
        is_done: impl Fn(&DestinationState) -> bool,
        change: impl Fn(DestinationState) -> DestinationState,
    ) -> anyhow::Result<Changed> {
        let Destination { key, namespace, address, .. } = &self.destination;
        let changed = |state: Option<&DestinationState>| {
            let state = state.cloned().unwrap_or_else(|| self.healthy());
            (!is_done(&state)).then(|| self.noticed(state.clone(), change(state)))
        };
        let item = key.health_item(namespace);
        let Updated { document, has_changed } = self.deployment.update(&item, changed).await?;
        let state = document.unwrap_or_else(|| self.healthy());
        // Publish even if the state is unchanged, because an earlier command may have failed before
        // it published the change.
        let published = self.deployment.tell(&News::of_state(*key, &state, self.now_ms)).await;
        published.with_context(|| {
            let outcome = if has_changed { "was changed" } else { "already has this state" };
            format!(
                "{address} {outcome}, but the functions may not have been notified; repeat the \
                 command"
            )
        })?;
        Ok(Changed { state, is_new: has_changed })
    }

    /// Removes the notice about a change if no subscription needs it.
    fn noticed(&self, before: DestinationState, after: DestinationState) -> DestinationState {
        if self.notifies {
            return after;
        }
        let is_new = |notice: &&Notice| !before.notices.contains(notice);
        let new: Vec<Notice> = after.notices.iter().filter(is_new).cloned().collect();
        after.without_notices(&new)
    }

    /// Creates the state of a destination that has no stored state.
    fn healthy(&self) -> DestinationState {
        let subscription = self.destination.names().into_iter().next().unwrap_or_default();
        DestinationState::healthy(&self.destination.address, &subscription, self.now_ms)
    }

    /// Prints the change and the affected subscriptions.
    fn report(&self, changed: &Changed, result: &str) -> anyhow::Result<ExitCode> {
        let mut text = format!("{}: {result}\n", self.destination.address);
        for name in self.destination.names() {
            text.push_str(&format!("  {name}\n"));
        }
        if changed.is_new {
            text.push_str(&format!("{KNOWN_WITHIN}\n"));
        }
        out(&text)?;
        Ok(ExitCode::SUCCESS)
    }
}
