package bucketstore

import "strconv"

// Stat returns the state of a process, and when it started. Both are "" if there is no such process.
func Stat(pid int) (state, started string) {
	s, _ := readStat(strconv.Itoa(pid))
	return s.state, s.started
}
