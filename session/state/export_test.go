package state

// Lifetime is lifetime.
const Lifetime = lifetime
