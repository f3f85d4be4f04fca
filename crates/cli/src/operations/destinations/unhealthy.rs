//! Lists the unhealthy destinations of a stack.

use delivery::delivery::health::shared::DestinationState;

use super::place::PlaceArgs;
use super::state::conditions;
use crate::terminal::text;

/// Describes each unhealthy destination of a stack for people.
///
/// # Errors
/// If the stored state cannot be read.
pub(crate) async fn unhealthy(stack: &str) -> anyhow::Result<Vec<String>> {
    let place = PlaceArgs { stack: Some(stack.to_owned()), config: String::new(), table: None };
    let place = place.open().await?;
    let states = place.states().await?.states;
    let line = |state: &DestinationState| {
        let names: Vec<&str> = conditions(state).iter().map(|condition| condition.name).collect();
        (!names.is_empty()).then(|| {
            let (of, to) = (text::line(&state.subscription), text::line(&state.destination));
            format!("{to} of {of} is {}", names.join(", "))
        })
    };
    Ok(states.iter().filter_map(|(_, state)| line(state)).collect())
}
