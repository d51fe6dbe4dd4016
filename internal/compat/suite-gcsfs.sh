# The tests of gcsfs, unmodified, from the checkout of fsspec/gcsfs in SUITE_DIR. Its requirements and
# pytest-subtests must be installed, too: fsspec of the same version, aiohttp, decorator,
# google-auth-oauthlib and google-cloud-storage.
. internal/compat/pytest.sh
[ -d "${SUITE_DIR:-}/gcsfs/tests" ] || fail "SUITE_DIR is not a checkout of fsspec/gcsfs: make compat-gcsfs DIR=PATH"
version=$(sed -n '/^[0-9][0-9.]*$/{p;q;}' "$SUITE_DIR/docs/source/changelog.rst")

start_emulator
service_account "$work/account.json"
export STORAGE_EMULATOR_HOST="$host" GOOGLE_APPLICATION_CREDENTIALS="$work/account.json"
run_suite suite-gcsfs gcsfs "$version" gcsfs
