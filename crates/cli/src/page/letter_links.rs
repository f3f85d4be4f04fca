//! What belongs to a dead letter besides its blob: its replay and what became of that, the dead letter that it
//! is a replay of, and whether a person has dismissed it.

use adapters::machine::Machine;
use axum::body::Bytes;
use axum::extract::{self, Path};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Redirect, Response};
use deadletters::cause::cause_id;
use deadletters::dismissed::{Dismissal, NOTE_MAX_CHARS};
use deadletters::ledger::ReplayRecord;
use deadletters::replay::ends::ReplayEndState;
use deadletters::state::LetterStates;
use delivery::deadletter::stored::StoredDeadLetter;
use delivery::delivery::replay::ReplayOutcome;
use delivery::ports::Clock as _;
use delivery::time::moment::rfc3339;
use maud::{Markup, html};

use super::app::{App, SharedApp};
use super::dead_letter::find;
use super::error::PageError;
use super::markup::{block, line};
use super::query::{pairs, value};
use crate::replay_end::NO_END;
use crate::text;
use crate::this_machine::user;

/// What belongs to a dead letter.
pub(super) struct LetterLinks {
    replay: Option<ReplayRecord>,
    dismissal: Option<Dismissal>,
}

/// What belongs to this dead letter.
pub(super) fn of(letter: &StoredDeadLetter, states: &LetterStates) -> LetterLinks {
    let replay = states.replay_of(letter.id).cloned();
    LetterLinks { replay, dismissal: states.dismissal_of(letter.id).cloned() }
}

impl LetterLinks {
    /// All of it, and the form that dismisses the dead letter.
    pub(super) fn section(&self, app: &App, letter: &StoredDeadLetter) -> Markup {
        html! {
            @if self.has_facts(letter) { section .panel aria-label="What belongs to it" { dl .facts {
                @if let Some(end) = self.end() { div { dt { "Its replay" } dd { (end) } } }
                @if let Some(replay) = &letter.replay { div { dt { "Is a replay of" } dd .mono {
                    a href={ "/letters/" (replay.letter) } { (replay.letter) }
                    " by " a href={ "/jobs/" (replay.job()) } { (line(replay.job())) }
                } } }
                @if let Some(Dismissal { at, by, note, .. }) = &self.dismissal {
                    div { dt { "Dismissed" } dd {
                        (line(&text::seconds(at)))
                        @if let Some(by) = by { " by " (line(by)) }
                        ": " (block(note))
                    } }
                }
            } } }
            (self.form(app, letter))
        }
    }

    /// Describes the end of its replay, as far as that is known.
    fn end(&self) -> Option<Markup> {
        let record = self.replay.as_ref()?;
        Some(match record.end_state_now() {
            ReplayEndState::NotRecorded => return None,
            ReplayEndState::UnderWay => html! { "under way" },
            ReplayEndState::Unknown => html! { "unknown: " (NO_END) },
            ReplayEndState::Ended(end) => html! {
                (end.state) " " (line(&text::seconds(&end.at)))
                // The new dead letter has the id of the delivery.
                @if end.state == ReplayOutcome::DeadAgain {
                    " → " a .mono href={ "/letters/" (record.entry.delivery) } { (record.entry.delivery) }
                }
            },
        })
    }

    fn has_facts(&self, letter: &StoredDeadLetter) -> bool {
        letter.replay.is_some() || self.end().is_some() || self.dismissal.is_some()
    }

    fn form(&self, app: &App, letter: &StoredDeadLetter) -> Markup {
        let action = |verb: &str| format!("/letters/{}/{verb}", letter.id);
        html! {
            @if self.dismissal.is_some() {
                form .buttons action=(action("undismiss")) method="post" {
                    (app.guard.token.field())
                    button type="submit" { "Take the dismissal back" }
                }
            } @else {
                form .buttons action=(action("dismiss")) method="post" {
                    (app.guard.token.field())
                    input name="note" required maxlength=(NOTE_MAX_CHARS) autocomplete="off"
                        placeholder="Why nothing is to be done" aria-label="Why nothing is to be done";
                    button type="submit" { "Dismiss" }
                }
            }
        }
    }
}

/// Dismisses a dead letter.
pub(super) async fn dismiss(
    extract::State(app): extract::State<SharedApp>,
    Path(id): Path<String>,
    form: Bytes,
) -> Result<Response, PageError> {
    let letter = find(&app, &id).await?;
    let back = format!("/letters/{}", letter.id);
    let pairs = pairs(&form);
    let note = value(&pairs, "note").unwrap_or_default();
    let (letters, at) = (vec![letter.id], rfc3339(Machine.now_ms()));
    let dismissal = Dismissal::new(letters, [cause_id(&letter)], at, user(), note);
    let dismissal = dismissal.map_err(|why| {
        PageError::new(StatusCode::BAD_REQUEST, "Not dismissed", why)
            .with_link(back.clone(), "Back to the dead letter")
    })?;
    app.letters.dismiss(&dismissal).await.map_err(PageError::storage)?;
    app.caches.expire();
    Ok(Redirect::to(&back).into_response())
}

/// Takes that back.
pub(super) async fn undismiss(
    extract::State(app): extract::State<SharedApp>,
    Path(id): Path<String>,
) -> Result<Response, PageError> {
    let letter = find(&app, &id).await?;
    let taken_back = Dismissal::taken_back(vec![letter.id], rfc3339(Machine.now_ms()), user());
    app.letters.dismiss(&taken_back).await.map_err(PageError::storage)?;
    app.caches.expire();
    Ok(Redirect::to(&format!("/letters/{}", letter.id)).into_response())
}
