//! Bundles through the front door: folders of text in, plans and notices out.

mod defects;
mod explained;
mod golden;
mod hostile;
mod memory;
