# The targets are for developers; users need only the go command.

.PHONY: help build test test-all check lint dist dist-check man publish-as test-packages test-arm64 test-windows bench bench-many bench-embed bench-parallel bench-link bench-outbox compat compat-go compat-docker compat-node compat-python compat-gcsfs compat-table live reliability model-check simulate simulate-joint kill kill-tree kill-parts risk kill-sync kill-spool outbox shared fleet-fire fleet-bench bench-fleet fleet-million outage fuzz mutate mutate-sample coverage

help:
	@echo 'For daily work:'
	@echo '  make build       bin/gcsup, bin/gcsup-fleet and bin/fakegcs'
	@echo '  make test        the tests of the main module'
	@echo '  make test-all    the tests of all modules'
	@echo '  make lint        gofmt, go vet, staticcheck and go mod tidy, in all modules; actionlint'
	@echo '  make check       what CI runs, with the programs that are installed'
	@echo '  make dist        a release for all platforms in dist/'
	@echo
	@echo 'Benchmarks: bench bench-many bench-embed bench-parallel bench-fleet bench-link bench-outbox'
	@echo 'Other programs and the service: compat compat-go compat-docker compat-node compat-python compat-gcsfs compat-table live'
	@echo 'Releases: publish-as man dist-check test-packages test-arm64 test-windows'
	@echo 'Stress: reliability model-check simulate simulate-joint kill kill-tree kill-parts risk kill-sync kill-spool outbox shared outage'
	@echo '        fleet-fire fleet-bench fleet-million fuzz'
	@echo 'What tests find: mutate mutate-sample coverage'
	@echo
	@echo 'The Makefile says what each of them does, and which variables it has.'

build:
	go build -o bin/ ./cmd/gcsup ./cmd/fakegcs
	cd fleet && go build -o ../bin/ ./cmd/gcsup-fleet

test:
	go test ./...

# The directories of the modules.
MODULES = . fleet fleet/deploy upload/otel upload/closecheck docs/examples internal/compat/recorded

test-all:
	for dir in $(MODULES); do (cd $$dir && go test ./...) || exit 1; done

STATICCHECK = $(shell sed -n 's/^staticcheck=\([^ ]*\).*/\1/p' .ci/run)
ACTIONLINT = github.com/rhysd/actionlint/cmd/actionlint@v1.7.12
lint:
	@files=$$(gofmt -l $$(git ls-files '*.go')); [ -z "$$files" ] || { echo "not formatted: $$files"; exit 1; }
	for dir in $(MODULES); do (cd $$dir && go mod tidy -diff && go vet ./... && go run $(STATICCHECK) ./...) || exit 1; done
	go run $(ACTIONLINT) -shellcheck= -pyflakes= # without the programs that are installed on some machines only

# check is what CI runs, with the other programs that are installed. .ci/run also installs them.
check:
	bash .ci/run --no-install

# dist builds a release into dist/: docs/maintain/release.md. VERSION stamps another version
# than that of git describe. TARGETS=linux/amd64,darwin/arm64 selects platforms. SIGN_KEY=FILE
# signs SHA256SUMS with minisign and the secret key in the file.
TARGETS = all
DIST_VERSION = $(if $(VERSION),-version $(VERSION))

dist:
	rm -rf dist
	go run ./internal/dist $(DIST_VERSION) -targets $(TARGETS) $(if $(SIGN_KEY),-sign-key $(SIGN_KEY))

# publish-as gives the modules an import path with a domain: make publish-as MODULE=example.com/you/gcsup.
# VERSION=v0.2.0 is the version that they require of each other, and OWNER=@team the owner of the code:
# docs/maintain/release.md.
publish-as:
	go run ./internal/publish $(if $(VERSION),-version '$(VERSION)') $(if $(OWNER),-owner '$(OWNER)') '$(MODULE)'

# test-packages installs, upgrades and removes the packages in root directories of their own. It
# needs root, dpkg and rpm.
test-packages:
	GCSUP_TEST_PACKAGES=1 go test -count=1 -v ./internal/dist -run 'TestPackages$$|TestSign'

# man writes the man pages, with the month of the last commit.
man:
	TZ=UTC SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) go test -count=1 ./cmd/gcsup -run TestManPages -man $(CURDIR)/dist/man

# dist-check builds a release of the last commit twice, in two clones and with an empty
# build cache, and compares them. CHECK_TARGETS=all builds all platforms, which takes minutes.
CHECK_TARGETS = linux/amd64
dist-check:
	sh internal/dist/check.sh $(DIST_VERSION) -targets $(CHECK_TARGETS)

# test-arm64 and test-windows run a release of another platform here, with qemu
# and with wine: docs/maintain/release.md has the last results.
test-arm64:
	sh internal/dist/foreign.sh arm64

test-windows:
	sh internal/dist/foreign.sh windows

# The benchmarks run gcsup, a baseline and the server as processes of their own, in turn.
# They print medians and the spread of nine runs, the ratios, and whether the machine was
# idle: docs/maintain/measurements.md. Common flags are -runs, -only, -ways and -cpuprofile. gcsup is built like a
# release: without the tags, gRPC is part of it, and 13 MiB more are resident.
build_released = go build -tags disable_grpc_modules,grpcnotrace

# bench uploads 1 GiB over loopback, without and with TLS and with 50 ms per reply: with
# one bare PUT that computes the CRC32C, with gcsup, with the official library's Writer, and
# with curl if it is installed. BENCH has further flags: BENCH='-runs 3 -size 268435456'.
bench:
	$(build_released) -o bin/gcsup ./cmd/gcsup
	go run ./internal/bench file -gcsup bin/gcsup -only loopback,tls,latency $(BENCH)

# bench-parallel uploads 1 GiB over one connection, in parts, and with gcloud if it is
# installed: over loopback, with TLS over 1 to 256 connections, with 20 MiB/s for each
# connection, and with a kill.
# PARALLEL has further flags: PARALLEL='-runs 1 -only parallel'.
bench-parallel:
	$(build_released) -o bin/gcsup ./cmd/gcsup
	go run ./internal/bench file -gcsup bin/gcsup -only parallel,connections,limited,killed $(PARALLEL)

# bench-embed measures streams and small objects in a program that embeds package
# upload, and compares them with bare requests and with the official library's Writer.
# EMBED has further flags: EMBED='-only small -runs 15'.
bench-embed:
	go run ./internal/bench embed $(EMBED)

# bench-many uploads 10,000 files of 16 KiB with gcsup and a bare net/http loop, uploads
# them a second time, and uploads them with rclone and gcloud if they are installed.
# MANY has further flags: MANY='-latency 50ms -only upload'.
bench-many:
	$(build_released) -o bin/gcsup ./cmd/gcsup
	PATH="$$PATH:$${XDG_CACHE_HOME:-$$HOME/.cache}/gcsup-compat" go run ./internal/bench many -gcsup bin/gcsup $(MANY)

# bench-fleet uploads 100,000 files of 16 KiB with gcsup cp -r and with a fleet, and compares the CPU
# time of their processes. BENCHFLEET has further flags: BENCHFLEET='-runs 3 -files 10000'.
bench-fleet:
	$(build_released) -o bin/gcsup ./cmd/gcsup
	cd fleet && go build -o ../bin/gcsup-fleet ./cmd/gcsup-fleet
	cd fleet && go run ./internal/benchfleet fleet -gcsup ../bin/gcsup -fleet ../bin/gcsup-fleet $(BENCHFLEET)

# bench-link uploads over bad links, through a router of our own between two network
# namespaces: with loss, reordering and long round trips, with an address that drops all
# packets, and with an outage. It needs root on Linux, and takes more than an hour. LINK has further
# flags: LINK='-only hole,outage -outage 1m -stall 20s'.
bench-link:
	$(build_released) -o bin/gcsup ./cmd/gcsup
	go run ./internal/bench link -gcsup bin/gcsup -runs 3 $(LINK)

# bench-outbox measures the time from a put until its first byte is on the wire, and the memory of an
# outbox with 100,000 files.
bench-outbox:
	go test -run '^$$' -bench Outbox -benchtime 1x ./internal/e2e

# compat uploads to the emulator with other programs, kills them, and runs them
# again: the official library, and those of gcloud, gsutil, rclone, restic and Node.js that are
# installed. PostgreSQL archives through an outbox, if it is installed. It runs Google's tests of the Go library, too. make compat CLIENT=rclone runs
# one. With COMPAT_ALL=1 it fails if one is
# missing. internal/compat/install-rclone.sh builds rclone.
compat:
	sh internal/compat/compat.sh $(CLIENT)

# compat-go runs Google's tests of the Go library on the emulator, and compat-docker those of the storage
# driver of Docker's registry. Their source comes from the module proxy.
compat-go:
	COMPAT_SECONDS=1200 sh internal/compat/compat.sh suite-go suite-go-system
compat-docker:
	COMPAT_SECONDS=1200 sh internal/compat/compat.sh suite-docker

# compat-node and compat-python run Google's tests of these clients on the emulator, and compat-gcsfs
# those of gcsfs, from a checkout that you have: make compat-node DIR=PATH, compiled. PYTHON is the interpreter.
# The failures that are expected are in internal/compat/suite-*.txt, with the reasons.
compat-node: SUITES = suite-node suite-node-system
compat-python: SUITES = suite-python suite-python-system
compat-node compat-python compat-gcsfs:
	SUITE_DIR=$(abspath $(DIR)) COMPAT_SECONDS=1200 sh internal/compat/compat.sh $(or $(SUITES),$(@:compat-%=suite-%))

# compat-table writes the results of the runs with COMPAT_RECORD=1 into docs/emulator/emulator.md.
compat-table:
	go run ./internal/compat suites -table docs/emulator/emulator.md

# live checks the facts of package fakegcstest on the real service, with your
# credentials, and prints the differences: make live BUCKET=gs://BUCKET. LIVE has flags
# of internal/compat/live: make live BUCKET=... LIVE='-project P -json'.
# It is never part of CI; make compat CLIENT=live runs it on the emulator.
live:
	go run ./internal/compat live $(LIVE) $(BUCKET)

# The next targets try to break the program; docs/maintain/test-results.md has the results.
# reliability runs a short form of them; each of the others runs one test at length.
FIRE = go test -count=1 -v -timeout 2h
SEED = 1

reliability: model-check
	$(FIRE) ./session/... -run 'PowerLoss|PowerDisk|DiskErrors|Damaged|Secret|Redacted|URI|Dir|Lock'
	$(FIRE) ./upload
	$(FIRE) ./internal/e2e

# model-check visits every sequence of replies on the decision tables and in an upload in parts,
# and pairs of mishaps in an upload in parts.
model-check:
	GCSUP_TEST_FULL=1 $(FIRE) ./session ./internal/decide -run 'EveryState|ModelCheck'
	GCSUP_TEST_FULL=1 $(FIRE) ./upload -run PartsMatrix

# simulate runs faults, crashes and outages in virtual time. To repeat one seed and print
# its events: go test ./upload -run Simulation -seed 17 -v
SEEDS = 100000
simulate:
	$(FIRE) ./upload -run TestSimulation -seeds $(SEEDS)

# simulate-joint runs everything that limits or waits together, in virtual time.
JOINT_SEEDS = 10000
simulate-joint:
	$(FIRE) ./upload -run JointSimulation -joint-seeds $(JOINT_SEEDS)

# kill sends SIGKILL to the client and to the server at seeded points.
KILLS = 1000
kill:
	$(FIRE) ./internal/e2e -run Killed -kills $(KILLS) -kill-seed $(SEED)

# kill-tree sends SIGKILL to the upload of a tree with a manifest at seeded points.
TREE_FILES = 50000
TREE_KILLS = 20
kill-tree:
	$(FIRE) ./internal/e2e -run ManifestSurvivesKills -tree-files $(TREE_FILES) -tree-kills $(TREE_KILLS) -kill-seed $(SEED)

# kill-parts sends SIGKILL to the upload of a file in parts at seeded points, and to that of a large
# file with the default of --parallel.
PART_KILLS = 300
AUTO_KILLS = 100
kill-parts:
	$(FIRE) ./internal/e2e -run PartsKilled -part-kills $(PART_KILLS) -auto-kills $(AUTO_KILLS) -kill-seed $(SEED)

# risk interrupts uploads over slow links, and compares what the service received with what is committed. It
# also kills each run of an upload after five seconds.
RISK_RUNS = 10
risk:
	$(FIRE) ./internal/e2e -run 'BytesAtRisk|ShortRuns' -risk-runs $(RISK_RUNS) -risk-idle 20s

# kill-sync changes a directory and its prefix at random, makes them equal with faults and SIGKILL, and
# compares them. The test takes half a second for each round.
SYNC_ROUNDS = 500
kill-sync:
	$(FIRE) ./internal/e2e -run 'TestSync$$' -sync-rounds $(SYNC_ROUNDS) -sync-seed $(SEED)

# outbox runs an outbox with SIGKILL, SIGSTOP, SIGTERM, outages, lost replies and full disks.
OUTBOX_RUNS = 1000
outbox:
	$(FIRE) ./internal/e2e -run OutboxUnderFire -outbox-runs $(OUTBOX_RUNS) -outbox-seed $(SEED)

# kill-spool ends streams of --spool by SIGKILL, SIGSTOP, SIGTERM, a full disk and outages, at seeded
# points. The full disk needs root, to mount a small file system.
SPOOLS = 300
kill-spool:
	$(FIRE) ./internal/e2e -run SpoolKilled -spools $(SPOOLS) -kill-seed $(SEED)

# shared runs processes that share a store in a bucket, with SIGKILL, SIGSTOP and faults.
SHARED_RUNS = 100
shared:
	GCSUP_TEST_FULL=1 $(FIRE) ./internal/e2e -run 'TestShared$$' -shared-runs $(SHARED_RUNS) -shared-seed $(SEED)

# fleet-fire runs fleets of processes, with one or three NATS servers each. Workers are
# killed, stopped and disconnected, are unhealthy, and have wrong clocks; servers are killed and
# wiped, and have full disks. The first run on a machine builds a standard library with a
# wrong clock, which takes some minutes.
FLEETS = 200
fleet-fire:
	cd fleet && $(FIRE) ./internal/fire -run 'TestFire$$' -fire-seeds $(FLEETS) -fire-seed $(SEED) -fire-clocks -parallel 8

# fleet-bench compares one worker with four. Each worker has a rate limit.
fleet-bench:
	cd fleet && go test -run '^$$' -bench Workers -benchtime 3x ./internal/fleet

# fleet-million measures the memory of a submit of many files, and of the NATS server.
SUBMIT_FILES = 1000000
fleet-million:
	cd fleet && $(FIRE) ./internal/fire -run 'TestMillion$$' -fire-files $(SUBMIT_FILES)

# outage makes the service unavailable for a time, in real time.
OUTAGE = 10m
outage:
	$(FIRE) ./internal/e2e -run Outage -outage $(OUTAGE)

# fuzz runs every fuzz target for FUZZTIME.
FUZZTIME = 60s
fuzz:
	bash internal/e2e/fuzz.sh $(FUZZTIME)

# mutate changes one token of the code at a time, and prints how many of the changes the own tests of each
# package find: make mutate PKGS='chunk session'. MUTATE has further flags of gremlins: MUTATE='--workers 1'.
PKGS = backoff chunk session session/state internal/decide $(sort $(wildcard $(addprefix upload/internal/,engine parts connections saved source batch)))
mutate:
	@MUTATE='$(MUTATE)' sh internal/mutate/own.sh $(PKGS)

# mutate-sample makes a sample of the changes in upload, engine, parts and session, and prints which of them the tests of
# upload and session find. The same seed selects the same changes. FROM continues a run that was interrupted.
MUTANTS = 200
FROM = 1
SAMPLE_PKGS = session internal/decide upload $(sort $(wildcard $(addprefix upload/internal/,engine parts connections)))
mutate-sample:
	go run ./internal/mutate -n $(MUTANTS) -from $(FROM) -seed $(SEED) $(SAMPLE_PKGS)

# coverage prints the part of the statements of each package below upload and session that their tests run together.
coverage:
	@sh internal/mutate/coverage.sh
