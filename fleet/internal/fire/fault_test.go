//go:build linux

package fire_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"gcsup/fakegcs/faults"
	"gcsup/internal/require"
)

// refuseWrites makes the service answer 503 to operations on the bucket of the data, until
// allowWrites or its next start. It answers all other requests.
func (e *emulator) refuseWrites(ops ...faults.Op) {
	var plan []faults.Fault
	for _, op := range ops {
		plan = append(plan, faults.Fault{
			Match: faults.Match{Op: op, Bucket: "data"}, Times: -1,
			Do: faults.Action{Effect: faults.EffectStatus, Status: http.StatusServiceUnavailable},
		})
	}
	e.control(http.MethodPost, plan)
}

func (e *emulator) allowWrites() { e.control(http.MethodDelete, nil) }

// control changes the fault plan. If the emulator was killed, it has none.
func (e *emulator) control(method string, plan []faults.Fault) {
	e.t.Helper()
	if !e.process.Alive() {
		return
	}
	body, err := json.Marshal(plan)
	require.NoError(e.t, err)
	req, err := http.NewRequestWithContext(e.t.Context(), method, e.url()+"/_fakegcs/faults", bytes.NewReader(body))
	require.NoError(e.t, err)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		e.t.Error(err)
		return
	}
	_ = resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		e.t.Errorf("%s of the fault plan: %s", method, resp.Status)
	}
}

// put makes an object, like another program.
func (e *emulator) put(t *testing.T, bucket, name string, data []byte) {
	t.Helper()
	url := fmt.Sprintf("%s/upload/storage/v1/b/%s/o?uploadType=media&name=%s", e.url(), bucket, name)
	resp, err := http.Post(url, "application/octet-stream", bytes.NewReader(data))
	require.NoError(t, err)
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Fatal(resp.Status)
	}
}
