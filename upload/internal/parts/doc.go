// Package parts decides how a file is sent over several connections: the size of its parts
// ([Options]), how many connections there are ([Link], [Pool]), and the [Reason] to use only
// one. It makes no requests, and knows no jobs, transfers or Tokens.
package parts
