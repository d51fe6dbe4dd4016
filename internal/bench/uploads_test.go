package main

import (
	"testing"

	"gcsup/internal/benchrun"
)

func TestConnectionsUsed(t *testing.T) {
	const summary = `{"v":1,"type":"summary"}` + "\n"
	for _, test := range []struct {
		output string
		want   float64 // 0: an error
	}{
		{`{"type":"result","parallel":{"connections":8}}` + "\n", 8},
		{`{"type":"result","parallel":null}` + "\n" + summary, 1},
		{"a warning\n" + `{"v":1,"type":"result","parallel":{"parts":9,"connections":4}}` + "\n" + summary, 4},
		{summary, 0},
		{"", 0},
	} {
		got, err := connectionsUsed.Of(&benchrun.Run{Output: []byte(test.output)})
		if got != test.want || (err != nil) != (test.want == 0) {
			t.Errorf("%q: %v, %v, want %v", test.output, got, err, test.want)
		}
	}
}
