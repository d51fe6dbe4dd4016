package fakegcs_test

import (
	"context"
	"errors"
	"testing"

	"cloud.google.com/go/storage"
	"google.golang.org/api/googleapi"
	"google.golang.org/api/iterator"

	"gcsup/fakegcs"
	"gcsup/internal/require"
)

// sdk returns the official client for w.
func (w *world) sdk() *storage.Client {
	w.Setenv("STORAGE_EMULATOR_HOST", w.url)
	client, err := storage.NewClient(context.Background())
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { client.Close() })
	return client
}

// refusedWith reports whether err is a reply with that status.
func refusedWith(err error, status int) bool {
	e, ok := errors.AsType[*googleapi.Error](err)
	return ok && e.Code == status
}

// New objects have the default list of their bucket, also after a restart.
func TestDefaultACL(t *testing.T) {
	dir := t.TempDir()
	for run := range 2 {
		srv := fakegcs.NewServer(t, &fakegcs.Options{Dir: dir})
		w := &world{T: t, gcs: srv.Server, url: srv.URL, client: plainClient}
		if run == 0 {
			w.want(200, "", "POST", "/storage/v1/b?project=p&predefinedDefaultObjectAcl=private&predefinedAcl=publicRead", []byte(`{"name":"bkt"}`))
			w.want(200, "", "PUT", "/storage/v1/b/bkt/iam", []byte(`{"bindings":[{"role":"roles/viewer","members":["allUsers"]}]}`))
		}
		object := w.do("POST", "/upload/storage/v1/b/bkt/o?uploadType=media&projection=full&name=x", nil).json(t)
		if list := object["acl"].([]any); len(list) != 1 {
			t.Errorf("run %d: the object has the list %v, want only the owner", run, list)
		}
		bucket := w.do("GET", "/storage/v1/b/bkt?projection=full", nil).json(t)
		if list := bucket["acl"].([]any); len(list) != 2 || list[1].(map[string]any)["entity"] != "allUsers" {
			t.Errorf("run %d: the bucket has the list %v", run, list)
		}
		if policy := w.do("GET", "/storage/v1/b/bkt/iam", nil).json(t); len(policy["bindings"].([]any)) != 1 || policy["etag"] != "CAI=" {
			t.Errorf("run %d: policy %v", run, policy)
		}
		require.NoError(t, srv.Close())
	}
}

// A body that is no object gets a reply, even if the query names an access control list.
func TestPredefinedACLWithoutObject(t *testing.T) {
	w := newWorld(t, nil)
	for body, status := range map[string]int{"null": 200, "": 200, "[]": 400} {
		w.want(status, "", "PATCH", "/storage/v1/b/bkt?predefinedAcl=private", []byte(body))
	}
}

func TestOfficialClientHMACKeys(t *testing.T) {
	w := newWorld(t, nil)
	client, ctx := w.sdk(), context.Background()
	if email, err := client.ServiceAccount(ctx, "mine"); err != nil || email == "" {
		t.Errorf("service account %q, %v", email, err)
	}
	key, err := client.CreateHMACKey(ctx, "mine", "robot@example.com")
	if err != nil || len(key.AccessID) != 61 || len(key.Secret) != 40 || key.State != storage.Active {
		t.Fatalf("%+v, %v", key, err)
	}
	count := func(opts ...storage.HMACKeyOption) (n int) {
		for it := client.ListHMACKeys(ctx, "mine", opts...); ; n++ {
			if _, err := it.Next(); err == iterator.Done {
				return n
			} else if err != nil {
				t.Fatal(err)
			}
		}
	}
	if count() != 1 || count(storage.ForHMACKeyServiceAccountEmail("other@example.com")) != 0 {
		t.Errorf("%d keys", count())
	}
	handle := client.HMACKeyHandle("mine", key.AccessID)
	if err := handle.Delete(ctx); !refusedWith(err, 400) {
		t.Errorf("deleting an active key: %v", err)
	}
	if _, err := handle.Update(ctx, storage.HMACKeyAttrsToUpdate{State: storage.Inactive, Etag: "wrong"}); !refusedWith(err, 412) {
		t.Errorf("update with another etag: %v", err)
	}
	if is, err := handle.Update(ctx, storage.HMACKeyAttrsToUpdate{State: storage.Inactive, Etag: key.Etag}); err != nil || is.State != storage.Inactive {
		t.Errorf("update: %+v, %v", is, err)
	}
	if err := handle.Delete(ctx); err != nil {
		t.Error(err)
	}
	if count() != 0 || count(storage.ShowDeletedHMACKeys()) != 1 {
		t.Errorf("%d keys, %d with deleted ones", count(), count(storage.ShowDeletedHMACKeys()))
	}
	if is, err := handle.Get(ctx); err != nil || is.State != storage.Deleted {
		t.Errorf("a deleted key: %+v, %v", is, err)
	}
}
