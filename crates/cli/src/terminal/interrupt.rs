//! Waits for the signals that end a program: Ctrl-C, or SIGTERM from containers and service
//! managers.

use std::io;

/// Waits for Ctrl-C or SIGTERM.
///
/// # Errors
/// If the process cannot listen for signals.
pub(crate) async fn requested() -> io::Result<()> {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let mut terminated = signal(SignalKind::terminate())?;
        tokio::select! {
            interrupted = tokio::signal::ctrl_c() => interrupted,
            _ = terminated.recv() => Ok(()),
        }
    }
    #[cfg(not(unix))]
    tokio::signal::ctrl_c().await
}
