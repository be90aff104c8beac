//! Where the tests find the helper programs.
