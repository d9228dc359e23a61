if [ -n "${UNI_ID}" ]; then
    # 管�模�
    python discovering.py ... &
    PY_PID=$!
    
    # 记录 uni_id 到 PID 的映射
    python -c "
import json
import os

uni_id_file = '${SCRIPT_DIR}/script_process/uni_id.json'
os.makedirs(os.path.dirname(uni_id_file), exist_ok=True)

try:
    with open(uni_id_file, 'r') as f:
        data = json.load(f)
except:
    data = {}

data['${UNI_ID}'] = ${PY_PID}

with open(uni_id_file, 'w') as f:
    json.dump(data, f, indent=2)
"
    
    wait ${PY_PID}
else
    # 标准模�
    python discovering.py ... &
    PID=$!
    # �有逻辑
fi
