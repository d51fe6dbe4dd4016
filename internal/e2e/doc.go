// Package e2e has only tests. They run the real program in separate processes
// and over real connections. The processes are killed, lose their connections,
// get wrong replies, or run twice at the same time. docs/maintain/test-results.md
// describes the results.
//
// harness_test.go has what the tests share: the service, the seeded choices, and the oracle. Each other file tells a
// story: how its processes are disturbed, and what else must hold.
package e2e
