package session

// trouble is what a conversation remembers of its failures.
type trouble struct {
	refreshed   bool // credentials were refreshed since the last wait, new session or progress
	reconnected bool // a request failed on a reused connection since the last progress
}

// again backs off before step. After the first failure on a reused connection there is no
// wait.
func (t *trouble) again(r *Reply, step Step) Action {
	a := Action{Step: step, Err: r.fail(nil)}
	if !t.reconnected && r.staleConnection() {
		t.reconnected = true
		return a
	}
	t.refreshed = false
	a.Wait, a.RetryAfter = true, r.RetryAfter
	return a
}

// refresh makes step with new credentials, the first time. The HTTP client refreshes them
// after a 401.
func (t *trouble) refresh(r *Reply, step Step) Action {
	if t.refreshed {
		return r.end(ErrCredentials)
	}
	t.refreshed = true
	return Action{Step: step, Err: r.fail(nil)}
}

// end ends a conversation that failed. kind is a sentinel error.
func (r *Reply) end(kind error) Action { return Action{Step: Fail, Err: r.fail(kind)} }
