// Package fire has no code. Its tests put the real program under fire, in
// processes of its own and over real connections: killed, cut off, lied to, run
// twice. docs/reliability.md says what they show.
package fire
