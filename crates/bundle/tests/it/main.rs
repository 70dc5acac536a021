//! Bundles through the front door: folders of text in, plans and notices out.

mod golden;
