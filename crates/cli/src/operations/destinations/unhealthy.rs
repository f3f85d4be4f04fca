//! Lists the unhealthy destinations of a stack.

use delivery::delivery::health::shared::DestinationState;

use super::deployment::Deployment;
use super::state::conditions;
use crate::operations::stack::Stack;
use crate::terminal::text;

/// Returns a line of text for each unhealthy destination of a stack. The line contains the address
/// of the destination, the name of one of its subscriptions, and the unhealthy conditions.
///
/// # Errors
/// If the stored state cannot be read.
pub(crate) async fn unhealthy(stack: &Stack) -> anyhow::Result<Vec<String>> {
    let states = Deployment::of_stack(stack).await?.states().await?.states;
    let line = |state: &DestinationState| {
        let names: Vec<&str> = conditions(state).iter().map(|condition| condition.name).collect();
        (!names.is_empty()).then(|| {
            let (subscription, to) =
                (text::line(&state.subscription), text::line(&state.destination));
            format!("{to} of {subscription} is {}", names.join(", "))
        })
    };
    Ok(states.iter().filter_map(|(_, state)| line(state)).collect())
}
