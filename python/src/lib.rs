//! The Python front end.
